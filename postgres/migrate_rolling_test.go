package postgres

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// watchThatKeepsTables replaces the watch function by one whose calls each hold a
// lock on the table of nodes for up to 30 s.
//
//go:embed testdata/watch_keeps_tables.sql
var watchThatKeepsTables string

// later returns a backend of a later program, which adds a column to the table of
// nodes and whose schema this program can use.
func later(t *testing.T, schema string) *Backend {
	t.Helper()
	b := backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: schema})
	b.installation.Core = additive(`ALTER TABLE {nodes} ADD COLUMN trial integer`)
	return b
}

// Nodes that watch each other do not delay a migration, and keep leading while
// it runs.
func TestMigrationDoesNotWaitForNodes(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"present":      "SELECT",
		"keeps tables": watchThatKeepsTables,
	} {
		t.Run(name, func(t *testing.T) {
			if name != "present" {
				pgtest.Long(t)
			}
			t.Parallel()
			schema := pgtest.Shared(t).Schema(t)
			b := backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: schema})
			if err := b.Migrate(context.Background()); err != nil {
				t.Fatal(err)
			}
			r := newLeaderWatch(t)
			for _, name := range []string{"first", "second", "third"} {
				r.candidate(backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: schema}), name, 10*time.Second)
			}
			r.next()
			eventually(t, b, watched, 3)
			// No node opens a session with a changed function, so the nodes meet it while they watch.
			exec(t, b, script)
			exec(t, b, watchStatements[stmtNext]) // each watch begins a new call
			if name == "present" {
				eventually(t, b, waitWithoutTables, 3)
			} else {
				eventually(t, b, waitWithTables, 3)
			}

			// Two attempts: the first one does not make the watches step aside yet.
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := later(t, schema).Migrate(ctx); err != nil {
				t.Errorf("under nodes: %v", err)
			}
			if version, err := b.SchemaVersion(ctx); err != nil || version != core.Newest()+1 {
				t.Errorf("version %d, %v", version, err)
			}
			select {
			case name := <-r.leads:
				t.Errorf("%s leads: the migration has deposed the leader", name)
			default:
			}
			eventually(t, b, watched, 3)
		})
	}
}

// watched is a condition: so many nodes are watched.
const watched = `
SELECT count(*) = $1
FROM {nodes} n
WHERE EXISTS (
    SELECT FROM pg_locks held JOIN pg_locks waits USING (locktype, database, classid, objid, objsubid)
    WHERE held.locktype = 'advisory' AND held.objsubid = 2 AND held.objid = n.incarnation::oid
        AND held.pid = n.pid AND held.granted AND NOT waits.granted)`

// waitWithoutTables is a condition: so many watches wait without a lock on a table.
const waitWithoutTables = `
SELECT count(*) = $1
FROM pg_locks waits
WHERE waits.locktype = 'advisory' AND NOT waits.granted
    AND waits.pid IN (SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% watch')
    AND waits.classid IN (SELECT classid FROM pg_locks l JOIN {nodes} n ON n.pid = l.pid AND l.objid = n.incarnation::oid)
    AND NOT EXISTS (
        SELECT FROM pg_locks tables
        WHERE tables.pid = waits.pid AND tables.relation = {nodes:regclass})`

// waitWithTables is a condition: so many watches wait with a lock on the table of nodes.
const waitWithTables = `
SELECT count(*) = $1
FROM pg_locks waits
JOIN pg_locks tables ON tables.pid = waits.pid AND tables.relation = {nodes:regclass}
WHERE waits.locktype = 'advisory' AND NOT waits.granted
    AND waits.pid IN (SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% watch')`

// The nodes of one program are replaced one by one by those of the next, and
// back, while each leader works as fast as it can. The schema stays that of the
// newer one.
//
// No version has been released, so both programs are the present code in one process, and
// the newer one has one more migration. Package cli of the command replaces processes of
// two programs that are built so.
func TestRollingUpgradeKeepsInvariants(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	older := func() *Backend { return backendOn(t, server.DSN(), Config{Schema: schema}) }
	newer := func() *Backend { return later(t, schema) }
	b := older()
	if err := b.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	exec(t, b, `CREATE TABLE {schema}.work (term bigint)`)
	pool := pgtest.Pool(t, server.DSN())
	r := newLeaderWatch(t)
	r.load = func(ctx context.Context, term *tenure.Term) {
		for ctx.Err() == nil {
			_ = InTx(ctx, pool, term, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, b.names.SQL(`INSERT INTO {schema}.work VALUES ($1)`), term.Number())
				return err
			})
		}
	}
	var ends []func()
	for _, name := range []string{"first", "second", "third"} {
		ends = append(ends, r.candidate(older(), name, 10*time.Second))
	}
	r.next()
	replace := func(with func() *Backend, suffix string) {
		for i, end := range ends {
			ends[i] = r.candidate(with(), suffix+string(rune('1'+i)), 10*time.Second)
			end()
		}
	}
	replace(newer, "newer-")
	if version, err := b.SchemaVersion(context.Background()); err != nil || version != core.Newest()+1 {
		t.Errorf("version %d, %v after the upgrade", version, err)
	}
	if err := b.installation.Schema.CheckCore(context.Background()); err != nil {
		t.Errorf("the newer schema, for the older program: %v", err)
	}
	replace(older, "older-")
	if longest := time.Duration(r.vacancy.Load()); longest > time.Second {
		t.Errorf("no node led for %v", longest)
	}
	if !row[bool](t, b, `SELECT count(DISTINCT term) > 1 FROM {schema}.work`) {
		t.Error("there was only one leader, or no work")
	}
}
