package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
)

const (
	lockNode = `SELECT pg_try_advisory_lock($1::int, $2::int)`

	// Nodes check their names and write their rows one after another. No session has
	// the number 0.
	lockNames = `SELECT pg_advisory_xact_lock($1::int, 0)`

	// The lock proves that a node is alive: if the node was killed, its lock is free as
	// soon as the server has noticed, whatever its row contains.
	findNamesake = `
WITH namesakes AS MATERIALIZED (
    SELECT id, hostname, incarnation
    FROM {nodes}
    WHERE name = $1 AND id <> $2 AND status <> 'dead'
)
SELECT id, hostname, incarnation
FROM namesakes
WHERE NOT pg_try_advisory_xact_lock_shared($3::int, incarnation)`

	limitWait   = `SELECT set_config('lock_timeout', $1, true)`
	awaitNodeOf = `SELECT pg_advisory_xact_lock_shared($1::int, $2::int)`

	// An existing row belongs to an earlier session of this process, in which trust is
	// over or never began, or to another process with the same id, which may still
	// trust its session.
	joinNodes = `
INSERT INTO {nodes} AS n (
    id, incarnation, name, hostname, lease_ms, pid, backend_start, status, drained, ip_address, http_port, grpc_port,
    roles, worker_capabilities, labels, version, spreads, status_by, server_lineage, server_epoch)
SELECT $1, $2, $3, $4, $5, a.pid, a.backend_start, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $6, $7
FROM pg_stat_get_activity(pg_backend_pid()) a
ON CONFLICT (id) DO UPDATE
SET trust_until = CASE
        WHEN n.incarnation = ANY ($8) THEN n.trust_until
        ELSE greatest(n.trust_until, n.last_heartbeat + n.lease_ms * interval '1 millisecond')
    END,
    server_lineage = excluded.server_lineage,
    server_epoch = excluded.server_epoch,
    incarnation = excluded.incarnation,
    name = excluded.name,
    hostname = excluded.hostname,
    lease_ms = excluded.lease_ms,
    pid = excluded.pid,
    backend_start = excluded.backend_start,
    status = excluded.status,
    drained = excluded.drained,
    ip_address = excluded.ip_address,
    http_port = excluded.http_port,
    grpc_port = excluded.grpc_port,
    roles = excluded.roles,
    worker_capabilities = excluded.worker_capabilities,
    labels = excluded.labels,
    version = excluded.version,
    spreads = excluded.spreads,
    status_by = excluded.status_by,
    watching = true,
    died_at = NULL,
    last_heartbeat = clock_timestamp()`

	// The row of a node records when its session ended, until the next session takes
	// the row over. If the earlier session is over, so that its lock is free, its terms
	// are closed first, as the next leader would close them (see stmtClose), but as of
	// when the node saw its connection end. So are those that this process no longer
	// trusts: a server process that hangs keeps the lock. A row that another session is
	// writing is left to that leader.
	closeForerunner = `
WITH earlier AS MATERIALIZED (
    SELECT
        incarnation,
        least(died_at, clock_timestamp() - coalesce($3::double precision, 0) * interval '1 millisecond') AS gone_at,
        last_heartbeat + lease_ms * interval '1 millisecond' AS lease_until,
        last_heartbeat,
        lease_ms
    FROM {nodes}
    WHERE id = $1 AND incarnation <> $2
), finished AS MATERIALIZED (
    SELECT * FROM earlier
    WHERE incarnation = ANY ($7::int[]) OR pg_try_advisory_xact_lock_shared($4::int, incarnation)
), closing AS MATERIALIZED (
    SELECT t.role, f.gone_at, f.lease_until, f.last_heartbeat, f.lease_ms
    FROM {terms} t, finished f
    WHERE t.node_id = $1 AND t.incarnation = f.incarnation AND t.ended_at IS NULL AND t.term > 0
    ORDER BY t.role
    FOR NO KEY UPDATE OF t SKIP LOCKED
)
UPDATE {terms} t
SET ended_at = greatest(t.acquired_at, {term_end}(c.last_heartbeat, c.lease_ms, c.gone_at, NULL)),
    last_seen = {last_sign}(c.last_heartbeat, t.acquired_at),
    end_reason = CASE
        WHEN (t.server_lineage, t.server_epoch) IS DISTINCT FROM ($5::text, $6::text) THEN 'server_changed'
        WHEN c.lease_until <= c.gone_at THEN 'lease_expired'
        ELSE 'crashed'
    END
FROM closing c
WHERE t.role = c.role`

	// Corrects false times. Removes nodes that died long ago with their requests, and requests that earlier
	// sessions of this node did not handle; those for the node itself only if its process
	// is another one. It waits for no other transaction: a session
	// could not open, and end that transaction, before that. A node that left a term open
	// stays while the row of its role is locked.
	sweepNodes = `
WITH corrected AS (` + correctTimes + `
), old AS MATERIALIZED (
    SELECT id
    FROM {nodes}
    WHERE status = 'dead'
        AND last_heartbeat < clock_timestamp() - interval '1 day'
        AND pg_try_advisory_xact_lock_shared($1::int, incarnation)
    FOR UPDATE SKIP LOCKED
), unfinished AS MATERIALIZED (
    SELECT t.role, t.node_id FROM {terms} t JOIN old ON old.id = t.node_id WHERE t.ended_at IS NULL
), unlocked AS MATERIALIZED (
    SELECT t.role FROM {terms} t WHERE t.role IN (SELECT u.role FROM unfinished u) FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {nodes} n
    USING old
    WHERE n.id = old.id
        AND NOT EXISTS (
            SELECT
            FROM unfinished u
            WHERE u.node_id = n.id AND u.role NOT IN (SELECT role FROM unlocked)
        )
    RETURNING n.*
)` + closeTermsOfGone + `
DELETE FROM {requests} r USING gone WHERE r.node_id = gone.id`
	sweepRequests = `DELETE FROM {requests} WHERE node_id = $1 AND (role <> '' OR NOT $2::boolean)`
)

// join makes the session a member: first the lock, so that no node that sees the row
// finds the lock free; then the row; then the notification.
func (s *session) join(ctx context.Context) error {
	var locked bool
	if err := s.conn.QueryRow(ctx, lockNode, s.space, s.incarnation).Scan(&locked); err != nil {
		return fmt.Errorf("take the node lock: %w", err)
	}
	if !locked {
		return fmt.Errorf("%w: the node lock %d:%d is held by another session", tenure.ErrConnection, s.space, s.incarnation)
	}
	if err := s.proveInstallation(ctx); err != nil {
		return err
	}
	if err := s.backend.names.startListening(ctx, s.conn); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := s.watch.findStaleSession(ctx, s.conn); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := s.writeRow(ctx); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := s.warningAsError("join"); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, string(stmtMoved), s.backend.names.nodesChannel(), s.nodePayload()); err != nil {
		return fmt.Errorf("announce the node: %w", err)
	}
	var used, elections int
	if err := s.conn.QueryRow(ctx, string(stmtLockUsage)).Scan(&used, &elections); err != nil {
		return fmt.Errorf("count locks: %w", err)
	}
	s.table.capacity = s.server.lockTable
	s.table.count(used, elections, s.openedAt)
	return nil
}

// writeRow writes the node's row. If names must be unique, it does so only if no
// other live node has the name. A process that was killed a moment ago may still
// have its session: the server checks once a second whether a client is connected.
func (s *session) writeRow(ctx context.Context) error {
	if !s.opening.UniqueName {
		return s.insertRow(ctx, s.conn)
	}
	taken := new(nameTaken)
	err := s.insertUniqueRow(ctx)
	if errors.As(err, &taken) {
		if err := s.awaitEnd(ctx, taken.incarnation); err != nil {
			return err
		}
		err = s.insertUniqueRow(ctx)
	}
	return err
}

// executor is a connection or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func (s *session) insertRow(ctx context.Context, on executor) error {
	node := s.opening.Node
	var gone any // for how long the session before has been, in milliseconds, if that is known
	if before := s.opening.PreviousSessionEnd; !before.Wall.IsZero() {
		gone = float64(s.opening.Clock.Now().Mono-before.Mono) / float64(time.Millisecond)
	}
	if recent := s.backend.recent.arguments(node.ID); recent != nil {
		if _, err := on.Exec(ctx, s.backend.names.sql(recordLostTerms), append(recent, node.ID, node.Name, gone)...); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{closeForerunner, []any{node.ID, s.incarnation, gone, s.space, s.server.lineage(), s.server.epoch(), s.untrusted()}},
		{sweepNodes, []any{s.space}},
		{sweepRequests, []any{node.ID, s.opening.Reopened}},
		{joinNodes, append([]any{node.ID, s.incarnation, node.Name, node.Host, s.opening.Timing.Lease.Milliseconds(),
			s.server.lineage(), s.server.epoch(), s.untrusted()},
			descriptionColumns(s.opening.Description)...)},
	} {
		if _, err := on.Exec(ctx, s.backend.names.sql(step.sql), step.args...); err != nil {
			return err
		}
	}
	return nil
}

// untrusted returns the earlier incarnations of this process in which it no longer
// trusts, or never did.
func (s *session) untrusted() []int32 {
	return append(s.backend.failedOpenings.of(s.opening.Node.ID), int32(s.opening.PreviousIncarnation))
}

// insertUniqueRow is insertRow unless another live node has the name. It holds a
// lock until the row is committed, so if two nodes join at the same time, the second
// one sees the first.
func (s *session) insertUniqueRow(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockNames, s.space); err != nil {
			return fmt.Errorf("wait for other nodes that join: %w", err)
		}
		node, taken := s.opening.Node, &nameTaken{name: s.opening.Node.Name}
		err := tx.QueryRow(ctx, s.backend.names.sql(findNamesake), node.Name, node.ID, s.space).
			Scan(&taken.id, &taken.host, &taken.incarnation)
		switch {
		case err == nil:
			return taken
		case !errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("look for the name: %w", err)
		}
		return s.insertRow(ctx, tx)
	})
}

// awaitEnd waits for the end of another session, at most a little longer than
// the server needs to notice that a client is gone.
func (s *session) awaitEnd(ctx context.Context, incarnation int32) error {
	const noticed = 1200 * time.Millisecond
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, limitWait, milliseconds(min(noticed, s.opening.Timing.RefreshInterval/3))); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, awaitNodeOf, s.space, incarnation)
		return err
	})
	if hasCode(err, codeLockNotAvailable) {
		return nil
	}
	return err
}

// nameTaken reports the node that has a name that must be unique.
type nameTaken struct {
	name        string
	id          uuid.UUID
	host        string
	incarnation int32
}

func (e *nameTaken) Error() string {
	return fmt.Sprintf("%v: %q is node %s on %s: stop it, or choose another name", tenure.ErrNameTaken, e.name, e.id, e.host)
}

func (e *nameTaken) Unwrap() error { return tenure.ErrNameTaken }
