package dialects

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/lease"
)

func TestBackendMigratesConcurrently(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		var children []*process
		for i := range 6 {
			children = append(children, c.launch(childMigrates, fmt.Sprintf("child-%d", i)))
		}
		for _, p := range children {
			if r := p.await("migrated"); r.Error != "" {
				t.Errorf("%s: %s", p.name, r.Error)
			}
		}
		leads(t, c.join("a").campaign(backendRole))
	})
}

// Nodes with manual migrations fail without tables, run on tables that an operator created,
// and reject those of a newer program.
func TestBackendManualMigrationsCreateNothing(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.lease.ManualMigrations = true
		db := k.connect(t, c.source)
		backend := newBackend(t, db, k.dialect, c.lease)
		refused := func() {
			t.Helper()
			node, err := tenure.Open(soon(t), backend, c.config)
			if !errors.Is(err, dberr.ErrSchema) || !errors.Is(err, tenure.ErrRefused) {
				t.Errorf("opening a node: %v; want ErrSchema", err)
			}
			if node != nil {
				_ = node.Close(soon(t))
			}
		}
		refused()
		for statement := range strings.SplitSeq(strings.TrimSuffix(backend.MigrationSQL(), ";\n"), ";\n\n") {
			execute(t, db, statement)
		}
		leads(t, c.join("a").campaign(backendRole))
		execute(t, db, "UPDATE tenure_lease_news SET version = version + 1")
		refused()
		if err := backend.Migrate(soon(t)); !errors.Is(err, dberr.ErrSchema) {
			t.Errorf("migrating the tables of a newer program: %v; want ErrSchema", err)
		}
	})
}

// Names of tables and schemas can contain unusual characters.
func TestBackendAcceptsUnusualNames(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.lease.Prefix = "it's \"quoted\" `here` "
		if k.dialect == lease.PostgreSQL {
			c.lease.Schema = "Let's \"see\""
		}
		a := c.join("a").campaign(backendRole)
		term := leads(t, a)
		c.lease.Prefix, c.steps = "", steplog.New(t)
		other := leads(t, c.join("b").campaign(backendRole))
		if !term.Valid() || !other.Valid() {
			t.Error("two installations with different prefixes met")
		}
	})
}

// If a transaction keeps the tables, their removal fails and removes none of them, also
// not later: nodes continue. On MySQL each removal of a table is a transaction.
func TestBackendMigrateDownRemovesAllTablesOrNone(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		db := k.connect(t, c.source)
		backend := newBackend(t, db, k.dialect, c.lease)
		if err := backend.Migrate(soon(t)); err != nil {
			t.Fatal(err)
		}
		reader, err := db.BeginTx(soon(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Rollback()
		if _, err := reader.ExecContext(soon(t), "UPDATE tenure_lease_seats SET term = 1"); err != nil {
			t.Fatal(err)
		}
		if err := backend.MigrateDown(limited(t, 3*time.Second), 0); err == nil {
			t.Fatal("the tables were removed under a transaction")
		}
		if err := reader.Rollback(); err != nil {
			t.Fatal(err)
		}
		leads(t, c.join("a").campaign(backendRole))
	})
}

// What is left of tables whose removal a crash of the server interrupted is removed by
// the next call.
func TestBackendMigrateDownContinuesAfterCrash(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds[3:], func(t *testing.T, k kind) {
		c := newCluster(t, k)
		db := k.connect(t, c.source)
		backend := newBackend(t, db, k.dialect, c.lease)
		for _, table := range []string{"sessions", "seats", "history", "requests"} {
			if err := backend.Migrate(soon(t)); err != nil {
				t.Fatal(err)
			}
			execute(t, db, "DROP TABLE tenure_lease_"+table)
			if err := backend.MigrateDown(soon(t), 0); err != nil {
				t.Fatalf("after the table of %s was removed: %v", table, err)
			}
		}
		leads(t, c.join("a").campaign(backendRole))
	})
}
