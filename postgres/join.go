package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/memory"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
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

	beginJoin = `BEGIN`
	endJoin   = `COMMIT`

	awaitNodeOf = `SELECT pg_advisory_xact_lock_shared($1::int, $2::int)`

	// An existing row belongs to one of two:
	//
	//   - an earlier session of this process, whose trust is over or never began;
	//   - another process with the same id, which may still trust its session.
	joinNodes = `
INSERT INTO {nodes} AS n (
    id, incarnation, name, hostname, lease_ms, pid, backend_start, status, drained, ip_address, http_port, grpc_port,
    roles, worker_capabilities, labels, version, spreads, status_by, server_lineage, server_epoch, fell_silent)
SELECT $1, $2, $3, $4, $5, a.pid, a.backend_start, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $6, $7, $20
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
    death_seen = true,
    fell_silent = excluded.fell_silent,
    last_heartbeat = clock_timestamp()`

	// The row of a node records when its session ended, until the next session takes the
	// row over. If the earlier session is over, its lock is free. Its terms are then
	// closed first, as the next leader would close them (see stmtClose), but as of when
	// the node saw its connection end. Terms this process no longer trusts are closed even
	// while the lock is held: a hanging server process keeps the lock. If another session
	// is writing the row of a role, the row is left to that session.
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
        WHEN $8::boolean OR c.lease_until <= c.gone_at THEN 'lease_expired'
        ELSE 'crashed'
    END
FROM closing c
WHERE t.role = c.role`

	// Corrects false times and removes old remnants:
	//
	//   - nodes dead for more than a day, with their requests;
	//   - requests left unhandled by earlier sessions of this node. Requests for the
	//     node itself are removed only if its process is a new one.
	//
	// It waits for no other transaction: the session could not open, and so could not end
	// the transaction in its way. A node with an open term stays while the row of its
	// role is locked.
	sweepNodes = `
WITH corrected AS (` + install.CorrectTimes + `
), old AS MATERIALIZED (
    SELECT id
    FROM {nodes}
    WHERE ` + diedLongAgo + `
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
	diedLongAgo   = `status = 'dead' AND last_heartbeat < clock_timestamp() - interval '1 day'`
	sweepRequests = `DELETE FROM {requests} WHERE node_id = $1 AND (role <> '' OR NOT $2::boolean)`
)

const readRemnants = `
SELECT EXISTS (SELECT FROM {nodes} WHERE id = $1) OR EXISTS (SELECT FROM {requests} WHERE node_id = $1),
    EXISTS (
        SELECT
        FROM {nodes}
        WHERE ` + diedLongAgo + ` OR ` + install.HasFalseTime + `
    )`

// joining makes a session a member: first the lock, then the row, then the notification.
// A node that sees the row must not find the lock free. Everything before the row takes
// one round trip, the rest another.
type joining struct {
	session      *session
	settings     link.Call // while the session is opened
	remnants     []link.Call
	preparations []link.Call
	row          link.Call
	name         []link.Call // begins the transaction of a unique name
	announcement link.Call
	usage        link.Call
	last         link.Call // settings
}

func (s *session) newJoining() *joining {
	names, timing := s.backend.names, s.opening.Timing
	j := &joining{
		session:      s,
		settings:     link.ApplyCall(pgdial.Session, link.OpeningLimits(timing, s.incarnation)),
		remnants:     s.remnantCalls(s.remnants),
		preparations: s.preparations(),
		row:          s.rowCall(),
		announcement: link.Call{SQL: names.SQL(sessionStatements[stmtMoved]), Args: []any{names.NodesChannel(), s.nodePayload()}},
		usage:        link.Call{SQL: names.SQL(sessionStatements[stmtLockUsage])},
		last:         link.ApplyCall(pgdial.Session, link.SessionLimits(timing, s.incarnation)),
	}
	if s.opening.UniqueName {
		j.name = []link.Call{
			{SQL: beginJoin},
			{SQL: lockNames, Args: []any{s.space}},
			{SQL: names.SQL(findNamesake), Args: []any{s.opening.Node.Name, s.opening.Node.ID, s.space}},
		}
	}
	return j
}

// before returns the statements before the row.
func (j *joining) before() []link.Call {
	s := j.session
	names := s.backend.names
	calls := []link.Call{j.settings, {SQL: lockNode, Args: []any{s.space, s.incarnation}}, {SQL: names.SQL(install.ReadInstallation)}, s.backend.installation.StrangersCall(s.space)}
	calls = append(calls, link.ListenCalls(names.ElectionsChannel(), names.NodesChannel())...)
	calls = append(calls, s.staleSessionCall())
	return slices.Concat(calls, j.remnants, j.preparations, j.name)
}

// prepare takes all steps before the row.
func (j *joining) prepare(ctx context.Context, a *link.Ahead) error {
	s := j.session
	_, err := a.Exec(ctx, j.settings.SQL, j.settings.Args...)
	if err := pgdial.ExplainSettings(ctx, a.Conn, err); err != nil {
		return err
	}
	var locked bool
	if err := a.QueryRow(ctx, lockNode, s.space, s.incarnation).Scan(&locked); err != nil {
		return fmt.Errorf("take the node lock: %w", err)
	}
	if !locked {
		return fmt.Errorf("%w: the node lock %d:%d is held by another session", tenure.ErrConnection, s.space, s.incarnation)
	}
	if err := s.backend.installation.Prove(ctx, a, s.conn, s.installation, s.space); err != nil {
		return err
	}
	if err := s.backend.names.StartListening(ctx, a); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := s.watch.findStaleSession(ctx, a); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	for _, c := range j.remnants {
		if _, err := a.Exec(ctx, c.SQL, c.Args...); err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	if err := a.CheckPreparations(j.preparations); err != nil {
		return err
	}
	if err := j.claimName(ctx, a); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return nil
}

// claimName begins a transaction and acquires the lock of names in it, if the name must
// be unique. It returns an error if another live node has the name. The transaction ends
// when the row is committed: if two nodes join at the same time, the second one sees the
// first. The session of a process killed a moment ago may still exist: the server checks
// once a second whether a client is connected.
func (j *joining) claimName(ctx context.Context, a *link.Ahead) error {
	if j.name == nil {
		return nil
	}
	taken := new(nameTaken)
	err := j.findName(ctx, a)
	if !errors.As(err, &taken) {
		return err
	}
	if _, err := a.Exec(ctx, "ROLLBACK"); err != nil {
		return err
	}
	if err := j.session.awaitEnd(ctx, taken.incarnation); err != nil {
		return err
	}
	return j.findName(ctx, a)
}

func (j *joining) findName(ctx context.Context, a *link.Ahead) error {
	if _, err := a.Exec(ctx, beginJoin); err != nil {
		return err
	}
	lock, find := j.name[1], j.name[2]
	if _, err := a.Exec(ctx, lock.SQL, lock.Args...); err != nil {
		return fmt.Errorf("wait for other nodes that join: %w", err)
	}
	taken := &nameTaken{name: j.session.opening.Node.Name}
	err := a.QueryRow(ctx, find.SQL, find.Args...).Scan(&taken.id, &taken.host, &taken.incarnation)
	switch {
	case err == nil:
		return taken
	case !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("look for the name: %w", err)
	}
	return nil
}

// rest are the row and the statements after it.
func (j *joining) rest() []link.Call {
	calls := []link.Call{j.row}
	if j.name != nil {
		calls = append(calls, link.Call{SQL: endJoin})
	}
	return append(calls, j.announcement, j.usage, j.last)
}

// finish does the rest.
func (j *joining) finish(ctx context.Context, a *link.Ahead) error {
	s := j.session
	if _, err := a.Exec(ctx, j.row.SQL, j.row.Args...); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if j.name != nil {
		if _, err := a.Exec(ctx, endJoin); err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	if err := s.warningAsError("join"); err != nil {
		return err
	}
	if _, err := a.Exec(ctx, j.announcement.SQL, j.announcement.Args...); err != nil {
		return fmt.Errorf("announce the node: %w", err)
	}
	var used, elections int
	if err := a.QueryRow(ctx, j.usage.SQL).Scan(&used, &elections); err != nil {
		return fmt.Errorf("count locks: %w", err)
	}
	s.table.capacity = s.server.LockTable
	s.table.count(used, elections, s.openedAt)
	_, err := a.Exec(ctx, j.last.SQL, j.last.Args...)
	return pgdial.ExplainSettings(ctx, a.Conn, err)
}

// insertRow writes the row of a doctor's node.
func (s *session) insertRow(ctx context.Context, on link.Executor) error {
	for _, c := range append(s.remnantCalls(remnants{own: true, others: true}), s.rowCall()) {
		if _, err := on.Exec(ctx, c.SQL, c.Args...); err != nil {
			return err
		}
	}
	return nil
}

// rowCall writes the node's row.
func (s *session) rowCall() link.Call {
	node := s.opening.Node
	return link.Call{SQL: s.backend.names.SQL(joinNodes), Args: append([]any{
		node.ID, s.incarnation, node.Name, node.Host, s.opening.Timing.Lease.Milliseconds(),
		s.server.Lineage(), s.server.Epoch(), s.untrusted(),
	}, append(descriptionColumns(s.opening.Description), s.opening.PreviousFellSilent)...)}
}

// remnantCalls handle remnants.
func (s *session) remnantCalls(left remnants) []link.Call {
	sql, node := s.backend.names.SQL, s.opening.Node
	var gone any // time since the end of the session before, in milliseconds; nil if unknown
	if before := s.opening.PreviousSessionEnd; !before.Wall.IsZero() {
		gone = float64(s.opening.Clock.Now().Mono-before.Mono) / float64(time.Millisecond)
	}
	var calls []link.Call
	if recent := s.backend.recent.Arguments(node.ID); recent != nil {
		calls = append(calls, link.Call{SQL: sql(memory.RecordLostTerms), Args: append(recent, node.ID, node.Name, gone)})
	}
	if left.own {
		calls = append(calls, link.Call{SQL: sql(closeForerunner), Args: []any{
			node.ID, s.incarnation, gone, s.space, s.server.Lineage(), s.server.Epoch(), s.untrusted(), s.opening.PreviousFellSilent,
		}})
	}
	if left.others {
		calls = append(calls, link.Call{SQL: sql(sweepNodes), Args: []any{s.space}})
	}
	if left.own {
		calls = append(calls, link.Call{SQL: sql(sweepRequests), Args: []any{node.ID, s.opening.Reopened}})
	}
	return calls
}

// untrusted returns the earlier incarnations of this process in which it no longer trusts,
// or never did.
func (s *session) untrusted() []int32 {
	return append(s.backend.failedOpenings.Of(s.opening.Node.ID), int32(s.opening.PreviousIncarnation))
}

// awaitEnd waits for the end of another session, for at most a little longer than a
// server needs to notice the death of a client.
func (s *session) awaitEnd(ctx context.Context, incarnation int32) error {
	const noticed = 1200 * time.Millisecond
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, link.LimitWait, link.Milliseconds(min(noticed, s.opening.Timing.RefreshInterval/3))); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, awaitNodeOf, s.space, incarnation)
		return err
	})
	if sqlstate.Has(err, sqlstate.LockNotAvailable) {
		return nil
	}
	return err
}

// nameTaken reports the current owner of a name. Names must be unique here.
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

// preparations prepare the session connection.
func (s *session) preparations() []link.Call {
	names := s.backend.names
	names.Assign(s.conn, sessionStatements)
	return names.Preparations(sessionStatements, sessionWarmUp)
}
