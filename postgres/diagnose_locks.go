package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// Who is in the registry: roles that were ever led, roles that are led, and
// nodes that live.
const readPopulation = `
SELECT
    (SELECT count(*) FROM {terms}),
    (SELECT count(*) FROM {leaders}),
    (SELECT count(*) FROM {nodes} WHERE status <> 'dead')`

// lockNeeds is what there is in the server's lock table and what there should
// be room for.
type lockNeeds struct {
	capacity          lockCapacity
	used              int // locks in the table, everybody's
	known, led, nodes int // roles that have a row, roles that are led, living nodes
}

// with is how many locks are in use when so many roles are led, by the nodes
// that there are.
func (n lockNeeds) with(roles int) int {
	others := max(0, n.used-n.led-n.nodes)
	return others + roles + n.nodes
}

// LockTableFor says whether the server's lock table has room for a number of
// roles on the nodes that there are, and if not, what max_locks_per_transaction
// must be: half of the table, which has max_locks_per_transaction *
// (max_connections + max_prepared_transactions) locks, must hold a lock for each
// role, one for each node, and those that others have now. It changes nothing.
// The context bounds it; without a deadline it ends after 30 s.
func (b *Backend) LockTableFor(ctx context.Context, roles int) tenure.Finding {
	var needs lockNeeds
	err := b.reader.ask(ctx, "examine the lock table", func(ctx context.Context, conn *pgx.Conn) error {
		var err error
		needs, err = b.readLockNeeds(ctx, conn)
		return err
	})
	if err != nil {
		return tenure.Finding{Name: "lock table", Severity: tenure.Failure, Detail: err.Error()}
	}
	return needs.finding(max(roles, needs.led))
}

// readLockNeeds reads the state of the lock table. A schema that is not there
// yet has no roles.
func (b *Backend) readLockNeeds(ctx context.Context, conn *pgx.Conn) (lockNeeds, error) {
	var (
		s     server
		needs lockNeeds
	)
	if err := identify(ctx, conn, &s); err != nil {
		return needs, err
	}
	needs.capacity = s.lockTable
	if err := conn.QueryRow(ctx, b.names.sql(sessionStatements[stmtLockUsage])).Scan(&needs.used); err != nil {
		return needs, err
	}
	err := conn.QueryRow(ctx, b.names.sql(readPopulation)).Scan(&needs.known, &needs.led, &needs.nodes)
	if hasCode(err, codeUndefinedTable) || hasCode(err, codeInvalidSchema) {
		err = nil
	}
	return needs, err
}

// finding judges the table by the number of roles that it should have room for.
func (n lockNeeds) finding(roles int) tenure.Finding {
	const few = 100
	needed := n.capacity.needed(n.with(roles))
	room := max(0, n.capacity.usable()-n.used)
	f := tenure.Finding{Name: "lock table", Detail: fmt.Sprintf(
		"%d of %d locks in use; room for %d more roles; %d roles on %d nodes need max_locks_per_transaction = %d, it is %d",
		n.used, n.capacity.size(), room, roles, n.nodes, needed, n.capacity.perTransaction)}
	switch {
	case needed > n.capacity.perTransaction:
		f.Severity = tenure.Warning
		f.Advice = fmt.Sprintf("set max_locks_per_transaction to %d or more and restart the server", needed)
	case room < few:
		f.Severity = tenure.Warning
		f.Advice = "raise max_locks_per_transaction before there are more roles, and restart the server"
	}
	return f
}

// lockTable looks whether there is room for the roles that there are.
func (d *diagnosis) lockTable(ctx context.Context, conn *pgx.Conn) error {
	needs, err := d.backend.readLockNeeds(ctx, conn)
	if err == nil {
		d.findings = append(d.findings, needs.finding(needs.known))
	}
	return err
}
