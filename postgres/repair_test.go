package postgres

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// TestHistoryFollowsRowsThatWereCopied: logical replication copies rows without the positions of
// sequences. The next node joins at its first attempt, and the history has it.
func TestHistoryFollowsRowsThatWereCopied(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	open(t, b).Abort()
	const copied = 5000
	// Set by hand: a copy of these rows needs two servers.
	exec(t, b, `INSERT INTO {node_history} (id, at, node_id, node_name, incarnation, status, previous) OVERRIDING SYSTEM VALUE
		SELECT n, now(), gen_random_uuid(), 'old', n, 'left', 'active' FROM generate_series(10, $1::int) n`, copied)
	exec(t, b, `ALTER TABLE {node_history} ALTER COLUMN id RESTART WITH 10`)
	open(t, b)
	if n := row[int](t, b, `SELECT count(*) FROM {node_history} WHERE id > $1`, copied); n < 1 {
		t.Errorf("%d new rows of the history; want one for the node that joined", n)
	}
}

// TestIncarnationsSkipManyRowsAtOnce: a far database pays a round trip for each statement.
func TestIncarnationsSkipManyRowsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	open(t, b)
	// Set by hand: thousands of nodes need as many processes.
	exec(t, b, `UPDATE {nodes} SET incarnation = 5000`)
	p := open(t, b)
	if p.incarnation <= 5000 {
		t.Errorf("the incarnation is %d; want more than 5000", p.incarnation)
	}
}

// TestRepairKeepsNumbersGrowing: the row of a role may have an older number than the history,
// and the clock may be behind both.
func TestRepairKeepsNumbersGrowing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("billing")
	p.release("billing", history.EndResigned)
	p.leave()
	// Set by hand: only a clock that went back gives such numbers.
	exec(t, b, `INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at)
		SELECT r, 9000000000000000, gen_random_uuid(), 'old', 1, now() FROM unnest(ARRAY['billing', 'lost']) r`)
	exec(t, b, `ALTER TABLE {terms} DISABLE TRIGGER USER`)
	eventuallyRepaired(t, b)
	q := open(t, b)
	for _, role := range []string{"billing", "lost"} {
		if number := q.win(role).Term; number <= 9000000000000000 {
			t.Errorf("Invariant 2: the number of the next term of %s is %d; want more than that of the history", role, number)
		}
	}
}

// TestRepairOfUndamagedSchemaChangesNothing: a repair is no migration.
func TestRepairOfUndamagedSchemaChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	if _, err := b.MigrateRepair(t.Context(), false); !errors.Is(err, dberr.ErrSchema) || errors.Is(err, dberr.ErrDamaged) {
		t.Errorf("without tables: %v; want ErrSchema", err)
	}
	p := open(t, b)
	if _, err := b.MigrateRepair(t.Context(), false); !errors.Is(err, dberr.ErrInstallationInUse) {
		t.Errorf("while a node lives: %v; want ErrInstallationInUse", err)
	}
	p.leave()
	if statements := eventuallyRepaired(t, b); len(statements) > 0 {
		t.Errorf("statements on an undamaged schema: %q; want none", statements)
	}
}

// leave ends the session as a process that leaves does.
func (p *peer) leave() {
	p.t.Helper()
	if err := p.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// eventuallyRepaired repairs as soon as no node may lead.
func eventuallyRepaired(t *testing.T, b *Backend) []string {
	t.Helper()
	eventually(t, b, `SELECT NOT EXISTS (SELECT FROM {nodes} WHERE status <> 'dead' AND last_heartbeat + lease_ms * interval '1 millisecond' > clock_timestamp())`)
	statements, err := b.MigrateRepair(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return statements
}

// TestDamageNamesStatement: an administrator can mend one part without the command.
func TestDamageNamesStatement(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	open(t, b)
	exec(t, b, `ALTER TABLE {spreads} SET UNLOGGED`)
	_, err := tryOpen(t, b)
	if !errors.Is(err, dberr.ErrDamaged) || !errors.Is(err, tenure.ErrRefused) {
		t.Fatalf("open: %v; want ErrDamaged", err)
	}
	for _, want := range []string{"tenure_spreads", "tenure migrate repair", b.names.SQL("ALTER TABLE {spreads} SET LOGGED;")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; want %q in it", err, want)
		}
	}
	exec(t, b, b.names.SQL("ALTER TABLE {spreads} SET LOGGED;"))
	open(t, b)
}

// TestNodesFillTablesWithoutRows: a dump without rows, as structure.sql of Rails, makes a
// database in which nodes lead, without a command.
func TestNodesFillTablesWithoutRows(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("billing")
	p.leave()
	// Set by hand: as such a dump leaves the tables.
	exec(t, b, `SET session_replication_role = replica;
		TRUNCATE {migrations}, {installation}, {server}, {terms}, {history}, {nodes}, {node_history}, {requests}, {spreads}`)
	var opening sync.WaitGroup
	peers := make([]*peer, 3)
	for i := range peers {
		opening.Go(func() {
			var err error
			if peers[i], err = tryOpen(t, b); err != nil {
				t.Errorf("node %d: %v; want a session", i, err)
			}
		})
	}
	opening.Wait()
	if !t.Failed() {
		peers[0].win("billing")
	}
}

// TestTablesWithoutRowsNeedTheirOwner: a node whose user may not repair the tables is refused,
// and the doctor says the same. After tenure migrate by the owner the node opens.
func TestTablesWithoutRowsNeedTheirOwner(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{}) // users belong to the whole server
	owner := backendOn(t, server.DSN(), Config{})
	node := backendOn(t, user(t, server, "node"), Config{})
	if err := owner.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for grant := range strings.Lines(strings.TrimSpace(node.NodeGrants("node"))) {
		exec(t, owner, grant)
	}
	// Set by hand: as a dump without rows leaves the tables.
	exec(t, owner, `TRUNCATE {migrations}, {installation}, {server}`)
	_, err := tryOpen(t, node)
	if !errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), "repair as the owner") {
		t.Errorf("open: %v; want ErrPrivilege and who can repair the tables", err)
	}
	if f := found(t, node.Diagnose(t.Context()), "schema"); f.Severity != doctor.Failure || !strings.Contains(f.Detail, "repair as the owner") {
		t.Errorf("the doctor says %+v; want a failure as the node's", f)
	}
	if err := owner.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate as the owner: %v", err)
	}
	open(t, node).win("billing")
}
