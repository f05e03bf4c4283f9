package records

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

const (
	// ReadMembers returns the transactions of a set. The number of a row's last locker may
	// be that of a transaction: to ask for the members of a set that no longer exists, or
	// not yet, would be an error in the server's log, "apparent wraparound".
	ReadMembers = `
SELECT m.xid::text
FROM pg_get_multixact_members(CASE
    WHEN mxid_age($1::text::xid) BETWEEN 1 AND (SELECT max(mxid_age(datminmxid)) FROM pg_database) THEN $1::text::xid
END) m`

	// The last locker of each row. It may have ended long ago.
	readRowLockers = `
SELECT role, xmax::text
FROM {terms}
WHERE role = ANY ($1) AND xmax::text <> '0'`

	// The transactions with locks or writes on rows of the table, except the nodes' own.
	// A prepared transaction has no process. $2 are the users of the waiting nodes: each
	// of them must be able to terminate the backend.
	readRowWriters = `
WITH locks AS MATERIALIZED (
    SELECT * FROM pg_locks WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()
), here AS MATERIALIZED (
    SELECT oid FROM pg_database WHERE datname = current_database()
), writers AS (
    SELECT x.virtualtransaction, x.pid, array_agg(DISTINCT x.transactionid::text) AS transactions
    FROM locks x
    WHERE x.locktype = 'transactionid'
        AND x.mode = 'ExclusiveLock'
        AND EXISTS (
            SELECT
            FROM locks r, here
            WHERE r.virtualtransaction = x.virtualtransaction
                AND r.locktype = 'relation'
                AND r.database = here.oid
                AND r.relation = {terms:regclass}
                AND r.mode <> 'AccessShareLock'
        )
        AND NOT EXISTS (
            SELECT
            FROM locks n, here
            WHERE n.pid = x.pid
                AND n.locktype = 'advisory'
                AND n.database = here.oid
                AND n.classid = $1::int::oid
                AND n.objsubid = 2
                AND n.mode = 'ExclusiveLock'
        )
    GROUP BY x.virtualtransaction, x.pid
)
SELECT
    w.transactions,
    coalesce(w.pid, 0),
    coalesce(p.gid, ''),
    coalesce(a.usename::text, p.owner::text, ''),
    coalesce(a.application_name, ''),
    coalesce(a.xact_start, p.prepared),
    coalesce(r.rolsuper, false),
    ARRAY(
        SELECT u.name
        FROM unnest($2::text[]) AS u(name)
        JOIN pg_roles n ON n.rolname = u.name
        WHERE NOT pg_has_role(n.oid, a.usesysid, 'USAGE')
            AND (r.rolsuper OR NOT pg_has_role(n.oid, 'pg_signal_backend', 'USAGE'))
        ORDER BY u.name
    ),
    current_setting('server_version_num')::int
FROM writers w
LEFT JOIN pg_stat_activity a ON a.pid = w.pid
LEFT JOIN pg_roles r ON r.oid = a.usesysid
LEFT JOIN pg_prepared_xacts p ON w.pid IS NULL AND p.transaction::text = ANY (w.transactions)
ORDER BY w.pid, w.virtualtransaction`
)

// rowWriter is a transaction with locks or writes on rows of the table of terms.
type rowWriter struct {
	history.Blocker
	transactions []string // its numbers, with those of its open savepoints
}

// ReadBlockersOf returns the transactions in the way of roles, by role. users are the
// database users of the waiting nodes. It takes no lock on a row, so it cannot attribute
// a row locked in a released savepoint: for such a row it returns every possible holder.
func (rs *Records) ReadBlockersOf(ctx context.Context, conn *pgx.Conn, space int32, roles, users []string) (map[string][]history.Blocker, error) {
	writers, err := rs.readRowWriters(ctx, conn, space, users)
	if err != nil || len(writers) == 0 {
		return nil, err
	}
	rows, err := conn.Query(ctx, rs.Names.SQL(readRowLockers), roles)
	if err != nil {
		return nil, fmt.Errorf("read the lockers of rows: %w", err)
	}
	lockers := map[string]string{}
	var role, locker string
	if _, err := pgx.ForEachRow(rows, []any{&role, &locker}, func() error { lockers[role] = locker; return nil }); err != nil {
		return nil, fmt.Errorf("read the lockers of rows: %w", err)
	}
	found := map[string][]history.Blocker{}
	for role, locker := range lockers {
		members, err := link.Texts(ctx, conn, ReadMembers, locker)
		if err != nil { // the set was removed at this moment
			members = nil
		}
		holds := func(w rowWriter) bool {
			return slices.ContainsFunc(w.transactions, func(t string) bool { return t == locker || slices.Contains(members, t) })
		}
		if !slices.ContainsFunc(writers, holds) {
			holds = func(rowWriter) bool { return true }
		}
		for _, w := range writers {
			if holds(w) {
				found[role] = append(found[role], w.Blocker)
			}
		}
	}
	return found, nil
}

func (rs *Records) readRowWriters(ctx context.Context, conn *pgx.Conn, space int32, users []string) ([]rowWriter, error) {
	rows, err := conn.Query(ctx, rs.Names.SQL(readRowWriters), space, users)
	if err != nil {
		return nil, fmt.Errorf("read the transactions on the terms: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (rowWriter, error) {
		var (
			w         rowWriter
			since     *time.Time
			superuser bool
			unable    []string
			version   int
		)
		err := row.Scan(&w.transactions, &w.PID, &w.Prepared, &w.User, &w.Application, &since, &superuser, &unable, &version)
		if since != nil {
			w.Since = *since
		}
		switch {
		case w.Prepared != "":
			w.Advice = "ROLLBACK PREPARED " + schema.Literal(w.Prepared)
		case len(unable) == 0:
			w.Terminable = true
		case superuser: // only a superuser may
			w.Advice = fmt.Sprintf("SELECT pg_terminate_backend(%d)", w.PID)
		default:
			w.Advice = install.GrantTermination(w.User, unable[0], version)
		}
		return w, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the transactions on the terms: %w", err)
	}
	return all, nil
}

// findBlockers adds the transactions in the way of terms, for roles locked by a node
// without a term.
func (rs *Records) findBlockers(ctx context.Context, space int32, holders []history.RoleStatus) error {
	var roles, users []string
	for _, h := range holders {
		for _, s := range h.Sessions {
			if h.Leader == nil && !s.Foreign() {
				roles = append(roles, h.Role)
				if !slices.Contains(users, s.User) {
					users = append(users, s.User)
				}
			}
		}
	}
	if len(roles) == 0 {
		return nil
	}
	return rs.Reader.Ask(ctx, "read what blocks roles", func(ctx context.Context, conn *pgx.Conn) error {
		found, err := rs.ReadBlockersOf(ctx, conn, space, roles, users)
		for i, h := range holders {
			holders[i].Blockers = found[h.Role]
		}
		return err
	})
}
