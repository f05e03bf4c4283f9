package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// watchStatements are the statements of the watch connection.
var watchStatements = map[link.Statement]string{
	stmtWatch: `
SELECT event, coalesce(died, 0), membership, waited, clock_timestamp() FROM {watch}($1, $2, $3, $4, $5, $6)`,
	stmtDead: `
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
), dead AS (
    UPDATE {nodes} n SET status = 'dead', died_at = coalesce($3, clock_timestamp()), death_seen = $3 IS NOT NULL FROM durability WHERE n.incarnation = $1 AND n.status <> 'dead'
    RETURNING n.id, n.name, n.last_heartbeat < clock_timestamp() - n.lease_ms / 2 * interval '1 millisecond' AS silent
), forgotten AS (
    DELETE FROM {requests} r USING dead WHERE r.node_id = dead.id AND r.role <> ''
)
SELECT name, silent, pg_notify($2, id::text) FROM dead`,
	// Roles of the dead node may be vacant. If the notification is lost, other nodes
	// notice at their next heartbeat. Every watch that reads a moved membership must see
	// that it was a death, so that sequence moves last.
	stmtNext: `
SELECT nextval({releases:regclass}), nextval({membership:regclass})`,
	// The session with the node lock of this incarnation is the node's session: no other
	// session acquires the lock exclusively.
	stmtStaleSession: `
SELECT l.pid, pg_terminate_backend(l.pid)
FROM pg_locks l
WHERE ` + nodeLocksOf + ` = $1::int::oid AND l.objid = $2::int::oid AND l.pid <> pg_backend_pid()`,
	stmtDeadHeld: readDeadHeld,
	// Both in one statement: most calls of the watch need both.
	stmtOutside: `
SELECT d.left_ms, d.held, coalesce(s.incarnation, 0), coalesce(s.lease_ms, 0)
FROM (` + readDeadHeld + `) d
LEFT JOIN (` + readOutsideRing + `) s ON true`,
	stmtMoved:    sessionStatements[stmtMoved],
	stmtNotify:   sessionStatements[stmtNotify],
	stmtReleased: sessionStatements[stmtReleased],
	stmtReap:     sessionStatements[stmtReap],
}

const (
	// Nodes marked as dead during their sessions, and for how long the watch must not end
	// the sessions. It does not read pg_locks, which stops the lock table for a moment.
	// Without CASE the planner may try the locks of all nodes.
	readDeadHeld = `
SELECT coalesce(min(1000 * extract(epoch FROM
    n.last_heartbeat + (n.lease_ms + $2::int) * interval '1 millisecond' - clock_timestamp()))::double precision, 0) AS left_ms,
    count(*) > 0 AS held
FROM {nodes} n
WHERE CASE WHEN n.status = 'dead' AND n.id <> $1 THEN NOT pg_try_advisory_xact_lock_shared($3::int, n.incarnation) END`

	// Sessions of nodes without a row, and their longest possible lease. Only three
	// watching nodes look, those with the oldest sessions: if all nodes looked, the
	// number of locks read would grow with the square of the nodes.
	readOutsideRing = `
SELECT l.objid::bigint::int AS incarnation,
    coalesce((SELECT max(t.lease_ms) FROM {terms} t WHERE t.incarnation = l.objid::bigint), 0) AS lease_ms
FROM pg_locks l
WHERE (
        SELECT count(*)
        FROM (SELECT FROM {nodes} n WHERE n.status <> 'dead' AND n.watching AND n.incarnation < $4 LIMIT 3) older
    ) < 3
    AND ` + nodeLocksOf + ` = $3::int::oid
    AND l.objid <> 0
    AND l.pid <> pg_backend_pid()
    AND NOT EXISTS (SELECT FROM {nodes} n WHERE n.incarnation = l.objid::bigint)`
)

// Parameters for a statement without effect.
const (
	none    = "{}"
	zero    = "0"
	no      = "false"
	yes     = "true"
	distant = "2000-01-01 00:00:00+00"
)

var nothing = uuid.Nil.String()

// sessionWarmUp and watchWarmUp are the statements of the first failover. A connection
// prepares and executes them when it opens: the first execution costs several times a
// later one, because it plans, and reads the catalogs.
var (
	sessionWarmUp = []link.Call{
		{SQL: string(stmtTake), Args: []any{none, none, none, none, none, none, nothing, none, zero, zero, "", "", no, no, no, none, none, nil}},
		{SQL: string(stmtTake), Args: []any{none, none, none, none, none, none, nothing, none, zero, zero, "", "", yes, no, no, none, none, nil}},
		{SQL: string(stmtEnd), Args: []any{none, none, none, none, none, nothing, none, none, none}},
		{SQL: string(stmtResign), Args: []any{none, none, none, none, none, nothing, none, none, none, "", none, none, none}},
	}
	watchWarmUp = []link.Call{
		{SQL: string(stmtDead), Args: []any{zero, "", distant}},
	}
)

// prepareWatch prepares a watch connection.
func prepareWatch(ctx context.Context, n link.Names, conn *pgx.Conn) error {
	n.Assign(conn, watchStatements)
	a := &link.Ahead{Conn: conn}
	calls := n.Preparations(watchStatements, watchWarmUp)
	a.Send(ctx, calls...)
	return a.CheckPreparations(calls)
}

// noPairs is no keys of locks.
var noPairs = []int32{}
