package diagnosis

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/postgres/internal/server"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// The locks of all sessions in the shared table.
const readLockUsage = `SELECT count(*) FROM pg_locks WHERE NOT fastpath`

// Roles with a candidate, now or earlier, live nodes, and the locks of their sessions.
const readPopulation = `
WITH living AS MATERIALIZED (
    SELECT pid FROM {nodes} WHERE status <> 'dead'
)
SELECT
    (SELECT count(*) FROM {terms} WHERE retired_at IS NULL),
    (SELECT count(*) FROM living),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid IN (SELECT pid FROM living))`

// lockNeeds is the content of the server's lock table, and the locks to make room for.
type lockNeeds struct {
	capacity server.LockCapacity
	used     int // locks in the table, of all sessions
	own      int // locks of nodes among them
	roles    int // in the registry
	nodes    int
}

// with returns the number of locks in use when so many roles are held. Each node
// has a lock and shares the installation's.
func (n lockNeeds) with(roles int) int { return max(0, n.used-n.own) + roles + 2*n.nodes }

// CheckLockTable is the method of the backend with this name.
func (e *Examiner) CheckLockTable(ctx context.Context, roles int) doctor.Finding {
	var needs lockNeeds
	err := e.Reader.Ask(ctx, "examine the lock table", func(ctx context.Context, conn *pgx.Conn) error {
		var err error
		needs, err = e.readLockNeeds(ctx, conn)
		return err
	})
	if err != nil {
		return doctor.Finding{Name: "lock table", Severity: doctor.Failure, Detail: err.Error()}
	}
	return needs.finding(roles)
}

// readLockNeeds reads the state of the lock table. A missing schema has no roles, and
// neither have tables of another program.
func (e *Examiner) readLockNeeds(ctx context.Context, conn *pgx.Conn) (lockNeeds, error) {
	var (
		s     server.Server
		needs lockNeeds
	)
	if err := server.Identify(ctx, conn, &s); err != nil {
		return needs, err
	}
	needs.capacity = s.LockTable
	if err := conn.QueryRow(ctx, readLockUsage).Scan(&needs.used); err != nil {
		return needs, err
	}
	err := conn.QueryRow(ctx, e.Names.SQL(readPopulation)).Scan(&needs.roles, &needs.nodes, &needs.own)
	if sqlstate.Has(err, sqlstate.UndefinedTable) || sqlstate.Has(err, sqlstate.InvalidSchema) || sqlstate.Has(err, sqlstate.UndefinedColumn) {
		err = nil
	}
	return needs, err
}

// finding reports whether the table has room for the number of roles.
func (n lockNeeds) finding(roles int) doctor.Finding {
	const few = 100
	needed := n.capacity.Needed(n.with(roles))
	room := max(0, n.capacity.Usable()-n.used)
	f := doctor.Finding{Name: "lock table", Detail: fmt.Sprintf(
		"%d of %d locks in use; room for %d more roles; %s on %s need max_locks_per_transaction = %d, it is %d",
		n.used, n.capacity.Size(), room, counted(roles, "role"), counted(n.nodes, "node"), needed, n.capacity.PerTransaction)}
	switch {
	case needed > n.capacity.PerTransaction:
		f.Severity = doctor.Warning
		f.Advice = fmt.Sprintf("set max_locks_per_transaction to %d or more and restart the server", needed)
	case room < few:
		f.Severity = doctor.Warning
		f.Advice = "raise max_locks_per_transaction before there are more roles, and restart the server"
	}
	return f
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// LockTable checks whether there is room for the existing roles.
func (d *diagnosis) lockTable(ctx context.Context, conn *pgx.Conn) error {
	needs, err := d.readLockNeeds(ctx, conn)
	if err == nil {
		d.findings = append(d.findings, needs.finding(needs.roles))
	}
	return err
}
