package dialects

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/lease"
)

// restricted is a database and a user without its own tables.
type restricted struct {
	kind         kind
	owner        *sql.DB
	source       string // of the user
	user         string // for GRANT, unquoted
	mayMakeTable string // what the user needs to create the tables too
}

func restrictedPostgreSQL(t *testing.T) restricted {
	t.Helper()
	server := pgtest.Shared(t)
	source := server.Database(t)
	database := source[strings.LastIndex(source, "/")+1:]
	database, _, _ = strings.Cut(database, "?")
	user := sandbox.UniqueName(t.Name())
	owner := kinds[0].connect(t, source)
	execute(t, owner, `CREATE ROLE "`+user+`" LOGIN`, "REVOKE ALL ON SCHEMA public FROM PUBLIC", `GRANT USAGE ON SCHEMA public TO "`+user+`"`)
	t.Cleanup(func() { execute(t, owner, `DROP OWNED BY "`+user+`"`, `DROP ROLE "`+user+`"`) })
	return restricted{kinds[0], owner, server.DSNFor(user, database), user, `GRANT CREATE ON SCHEMA public TO "` + user + `"`}
}

func restrictedMariaDB(t *testing.T) restricted {
	t.Helper()
	server := mariatest.Shared(t)
	database := server.Database(t)
	user := sandbox.UniqueName(t.Name())
	owner := kinds[3].connect(t, server.DSN(database))
	execute(t, owner, "CREATE USER `"+user+"`@`%`")
	t.Cleanup(func() { execute(t, owner, "DROP USER `"+user+"`@`%`") })
	source := strings.Replace(server.DSN(database), "root@", user+"@", 1)
	return restricted{kinds[3], owner, source, user, "GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON `" + database + "`.* TO `" + user + "`@`%`"}
}

// onRestricted runs a test with a user of each server that has users.
func onRestricted(t *testing.T, test func(t *testing.T, r restricted)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) restricted{"PostgreSQL": restrictedPostgreSQL, "MariaDB": restrictedMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// grant executes the statements that a function of the backend returns.
func (r restricted) grant(t *testing.T, grants func(user string) (string, error)) {
	t.Helper()
	all, err := grants(r.user)
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(strings.TrimSuffix(all, ";\n"), ";\n") {
		execute(t, r.owner, statement)
	}
}

// The grants for nodes suffice for everything that nodes do, and those for an application
// allow only fencing.
func TestBackendGrantsSuffice(t *testing.T) {
	t.Parallel()
	onRestricted(t, func(t *testing.T, r restricted) {
		owned := newBackend(t, r.owner, r.kind.dialect, lease.Config{})
		c := clusterOn(t, r.kind, r.source)
		c.config.Lease = time.Minute
		c.config.CheckInterval = patience // for which a role is reserved that is handed over
		if err := owned.Migrate(soon(t)); err != nil {
			t.Fatal(err)
		}
		backend := newBackend(t, r.kind.connect(t, r.source), r.kind.dialect, lease.Config{})
		if _, err := tenure.Open(soon(t), backend, c.config); !errors.Is(err, dberr.ErrPrivilege) || !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("without any privilege: %v; want ErrPrivilege", err)
		}

		r.grant(t, owned.ApplicationGrants)
		owner := c.joinOn("owner", r.owner)
		election := owner.campaign(backendRole)
		term := leads(t, election)
		application := r.kind.connect(t, r.source)
		nothing := func(*sql.Tx) error { return nil }
		if err := lease.InTx(soon(t), application, nil, term, nothing); err != nil {
			t.Errorf("fencing with the grants of an application: %v", err)
		}
		if _, err := newBackend(t, application, r.kind.dialect, lease.Config{}).Leaders(soon(t)); !errors.Is(err, dberr.ErrPrivilege) {
			t.Errorf("an application reads the tables of nodes: %v; want ErrPrivilege", err)
		}

		r.grant(t, owned.NodeGrants)
		member := c.join("restricted")
		standby := member.campaign(backendRole)
		if err := owner.backend.Request(soon(t), tenure.Request{Kind: tenure.RequestHandOver, Role: backendRole, Target: member.ID()}); err != nil {
			t.Fatal(err)
		}
		handedOver := leads(t, standby)
		if err := member.backend.Request(soon(t), tenure.Request{Kind: tenure.RequestStepDown, Role: backendRole}); err != nil {
			t.Errorf("asking the leader to step down: %v", err)
		}
		if cause := ended(t, handedOver); !errors.Is(cause, tenure.ErrSteppedDown) {
			t.Errorf("the term ended with %v; want ErrSteppedDown", cause)
		}
		leaderOf(t, handedOver.Number(), election, standby) // either may be first
		for _, ask := range []func() error{
			func() error { _, err := member.backend.Leaders(soon(t)); return err },
			func() error { _, err := member.backend.Nodes(soon(t)); return err },
			func() error { _, err := member.backend.Roles(soon(t)); return err },
			func() error { return member.Close(soon(t)) },
		} {
			if err := ask(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A user that can create tables needs no other grants.
func TestBackendCreatesItsTables(t *testing.T) {
	t.Parallel()
	onRestricted(t, func(t *testing.T, r restricted) {
		execute(t, r.owner, r.mayMakeTable)
		c := clusterOn(t, r.kind, r.source)
		leads(t, c.join("a").campaign(backendRole))
	})
}
