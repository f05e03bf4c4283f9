package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

func TestConcurrentMigrationsSucceed(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	namespace := server.Schema(t)
	var (
		group sync.WaitGroup
		start = make(chan struct{})
		errs  = make([]error, 10)
		nodes = make([]*peer, 10)
	)
	for i := range errs {
		b := backendOn(t, server.DSN(), Config{Schema: namespace})
		group.Go(func() {
			<-start
			nodes[i], errs[i] = tryOpen(t, b)
		})
	}
	close(start)
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		if i > 0 && nodes[i].installation != nodes[0].installation {
			t.Error("there are two installations")
		}
	}
	nodes[0].take("scheduler")
	nodes[9].refused("scheduler")
}

func TestMigrationsMoveUpAndDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), Prefix: `o'd "d\_`, ManualMigrations: true})
	ctx := context.Background()
	version := func(want int) {
		t.Helper()
		if got, err := b.SchemaVersion(ctx); err != nil || got != want {
			t.Errorf("version %d, %v; want %d", got, err, want)
		}
	}
	version(0)
	if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("open without a schema: %v; want ErrSchema", err)
	}
	if _, err := b.Leaders(ctx); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("leaders without a schema: %v; want ErrSchema", err)
	}
	for range 2 {
		if err := b.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	version(core.Newest())
	p := open(t, b)
	p.take("scheduler")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.MigrateDown(ctx, schema.Core, 0); err != nil {
			t.Fatal(err)
		}
		version(0)
	}
	left := row[int](t, b, `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1`, b.config.Schema)
	if left > 0 {
		t.Errorf("%d objects are left", left)
	}

	exec(t, b, migrationSQL(t, b))
	version(core.Newest())
	open(t, b).take("scheduler")
	if err := b.installation.Schema.CheckCore(ctx); err != nil {
		t.Errorf("the present schema: %v", err)
	}
	exec(t, b, "INSERT INTO {migrations} (feature, version) VALUES ('core', 99)")
	for name, err := range map[string]error{
		"up": b.Migrate(ctx), "down": b.MigrateDown(ctx, schema.Core, 0), "look": b.installation.Schema.CheckCore(ctx),
	} {
		if !errors.Is(err, dberr.ErrSchema) {
			t.Errorf("a newer schema, %s: %v; want ErrSchema", name, err)
		}
	}
}

// An older or missing schema is not an error. Reading what it lacks returns an error
// that says so.
func TestOlderSchemaIsReportedByReads(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	if err := b.installation.Schema.CheckCore(ctx); err != nil {
		t.Errorf("no schema: %v", err)
	}
	if err := b.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	exec(t, b, `ALTER TABLE {history} DROP COLUMN ended_by; ALTER TABLE {node_history} DROP COLUMN changed_by`)
	b.installation.Core = additive(`SELECT`) // the next version of the program, which has these columns
	if err := b.installation.Schema.CheckCore(ctx); err != nil {
		t.Errorf("an older schema: %v", err)
	}
	_, termsErr := b.History(ctx, history.Query{})
	_, nodesErr := b.NodeHistory(ctx, history.Query{})
	for what, err := range map[string]error{"the terms": termsErr, "the changes of nodes": nodesErr} {
		if !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "older than this program") {
			t.Errorf("%s: %v; want the schema to be older", what, err)
		}
	}
}

// migrationSQL is the script that creates the core.
func migrationSQL(t testing.TB, b *Backend) string {
	t.Helper()
	script, err := b.MigrationSQL()
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// user creates a database user and returns the connection string.
func user(t testing.TB, server *pgtest.Server, name string) string {
	t.Helper()
	conn := server.Conn(t)
	if _, err := conn.Exec(context.Background(), "CREATE ROLE "+name+" LOGIN"); err != nil {
		t.Fatal(err)
	}
	return server.DSNFor(name, "postgres")
}

func TestRestrictedUserGetsPrivilegeErrors(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{}) // users belong to the whole server
	owner := backendOn(t, server.DSN(), Config{Schema: "elections"})
	node := backendOn(t, user(t, server, "node"), Config{Schema: "elections"})
	ctx := context.Background()

	if err := node.Migrate(ctx); !errors.Is(err, dberr.ErrPrivilege) {
		t.Errorf("migrate: %v; want ErrPrivilege", err)
	}
	if err := owner.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := tryOpen(t, node)
	if !errors.Is(err, dberr.ErrPrivilege) {
		t.Fatalf("open: %v; want ErrPrivilege", err)
	}
	grants := strings.Split(strings.TrimSpace(node.NodeGrants("node")), "\n")
	for _, grant := range grants[:len(grants)-1] { // the last is granted to PUBLIC
		exec(t, owner, grant)
	}
	p := open(t, node)
	p.take("scheduler")
	p.release("scheduler", history.EndResigned)
	p.beat()

	// Each privilege is needed, and the error names it when it is missing.
	for _, grant := range grants {
		revoke := strings.Replace(strings.Replace(grant, "GRANT", "REVOKE", 1), " TO ", " FROM ", 1)
		if strings.Contains(grant, "FUNCTION") {
			revoke = strings.Replace(revoke, `"node"`, `"node", PUBLIC`, 1)
		}
		exec(t, owner, revoke)
		_, err := tryOpen(t, node)
		object := grant[strings.Index(grant, " ON ")+4 : strings.Index(grant, " TO ")]
		if !errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), object) {
			t.Errorf("%s: %v; want ErrPrivilege and %s", revoke, err, object)
		}
		exec(t, owner, grant)
	}
	open(t, node).take("scheduler")
}

// A user that may not terminate the sessions of another node's user is refused,
// since it could not free that node's roles.
func TestUserThatCannotTerminateOtherNodesIsRefused(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	owner := backendOn(t, server.DSN(), Config{})
	one := backendOn(t, user(t, server, "one"), Config{})
	two := backendOn(t, user(t, server, "two"), Config{})
	if err := owner.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	exec(t, owner, owner.NodeGrants("one")+owner.NodeGrants("two"))
	open(t, one)
	_, err := tryOpen(t, two)
	if !errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), `GRANT "one" TO "two"`) {
		t.Errorf("%v; want ErrPrivilege with the GRANT", err)
	}
	exec(t, owner, `GRANT one TO two`)
	open(t, two)
}

func TestApplicationUserFencesWithGrants(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	p := open(t, b)
	p.take("scheduler")
	dsn := user(t, server, "application")
	exec(t, b, b.ApplicationGrants("application"))
	conn := pgtest.Conn(t, dsn)
	ctx := context.Background()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.fence(ctx, tx, p.mark("scheduler")); err != nil {
		t.Errorf("fence: %v", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	for _, sql := range []string{
		"UPDATE {terms} SET term = term + 1", "UPDATE {terms} SET ended_at = now()", "DELETE FROM {terms}", "UPDATE {nodes} SET status = 'dead'",
	} {
		if _, err := conn.Exec(ctx, b.names.SQL(sql)); !sqlstate.Has(err, sqlstate.InsufficientPrivilege) {
			t.Errorf("%s: %v; want it forbidden", sql, err)
		}
	}
}

// If a table or function of another program has a name that the schema needs,
// the migration is refused with the advice to choose another prefix, and
// nothing is changed.
func TestMigrationRefusesForeignObjects(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"a table":    `CREATE TABLE {history} (id int)`,
		"an index":   `CREATE TABLE {schema}.t (id int); CREATE INDEX "tenure_nodes" ON {schema}.t (id)`,
		"a type":     `CREATE TYPE {terms} AS (id int)`,
		"a function": `CREATE FUNCTION {keep_terms}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
	} {
		b := newBackend(t)
		exec(t, b, `CREATE SCHEMA IF NOT EXISTS {schema}; `+object)
		err := b.Migrate(context.Background())
		if !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "choose another prefix") {
			t.Errorf("%s: %v; want ErrSchema and the advice", name, err)
		}
		if version, err := b.SchemaVersion(context.Background()); version != 0 || err != nil {
			t.Errorf("%s: then the version is %d, %v; want 0", name, version, err)
		}
	}
}

// A migration that is prevented names the cause, and succeeds after the remedy.
func TestMigrationNamesObstacle(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	if err := b.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	exec(t, b, `INSERT INTO {terms} (role, lock_key) VALUES ('ledger', '77')`)
	b.installation.Core = additive(`
DO $tenure_function$
BEGIN
    IF EXISTS (SELECT FROM {terms} WHERE role = 'ledger') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('run DELETE FROM %s WHERE role = %L', {terms:regclass}, 'ledger');
    END IF;
END
$tenure_function$`)
	err := b.Migrate(ctx)
	remedy := regexp.MustCompile(`DELETE FROM \S+ WHERE role = 'ledger'`).FindString(fmt.Sprint(err))
	if !errors.Is(err, dberr.ErrSchema) || remedy == "" {
		t.Fatalf("migrate: %v; want ErrSchema and the statement", err)
	}
	if version, err := b.SchemaVersion(ctx); version != core.Newest() || err != nil {
		t.Errorf("then the version is %d, %v; want %d", version, err, core.Newest())
	}
	exec(t, b, remedy)
	if err := b.Migrate(ctx); err != nil {
		t.Errorf("after the advice: %v", err)
	}
}
