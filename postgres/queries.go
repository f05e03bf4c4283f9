package postgres

import (
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/records"
)

// The statements of the session connection.
const (
	stmtUnlock      link.Statement = "unlock"
	stmtUnlockPairs link.Statement = "unlock_pairs"
	stmtOwnLocks    link.Statement = "own_locks"
	stmtLockUsage   link.Statement = "lock_usage"
	stmtAddRoles    link.Statement = "add_roles"
	stmtRoleKeys    link.Statement = "role_keys"
	stmtKeyOwners   link.Statement = "key_owners"
	stmtLastTerms   link.Statement = "last_terms"
	stmtClose       link.Statement = "close_terms"
	stmtReunion     link.Statement = "reunion"
	stmtTake        link.Statement = "take"
	stmtEnd         link.Statement = "end_terms"
	stmtResign      link.Statement = "resign"
	stmtReleased    link.Statement = "released"
	stmtHolders     link.Statement = "holders"
	stmtHeartbeat   link.Statement = "heartbeat"
	stmtRequests    link.Statement = "take_requests"
	stmtTaken       link.Statement = "taken_requests"
	stmtAnswer      link.Statement = "answer_offers"
	stmtNotify      link.Statement = "notify"
	stmtLeave       link.Statement = "leave"
	stmtMoved       link.Statement = "moved"
	stmtReap        link.Statement = "reap"
	stmtCorrect     link.Statement = "correct_times"
	stmtDescribe    link.Statement = "describe"
	stmtMembers     link.Statement = "members"
	stmtMembersOf   link.Statement = "members_of"
	stmtLeading     link.Statement = "leading"
	stmtWatching    link.Statement = "watching"
	stmtWake        link.Statement = "wake_watch"
)

// The statements of the watch connection. It also uses stmtMoved, stmtNotify,
// stmtReleased and stmtReap.
const (
	stmtWatch        link.Statement = "watch"
	stmtDead         link.Statement = "mark_dead"
	stmtNext         link.Statement = "next_membership"
	stmtStaleSession link.Statement = "end_stale_session"

	stmtDeadHeld link.Statement = "dead_held"
	stmtOutside  link.Statement = "outside"
)

// The session with the node lock of an incarnation is the node's session: no other
// session acquires the lock exclusively. The condition on pg_locks ends with the space of
// the installation.
const (
	nodeLocksOf = `l.locktype = 'advisory'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.objsubid = 2
    AND l.mode = 'ExclusiveLock'
    AND l.granted
    AND l.classid`
)

// sessionStatements are the statements of the session connection.
var sessionStatements = map[link.Statement]string{
	stmtUnlock: `
SELECT k, pg_advisory_unlock(k) FROM unnest($1::bigint[]) k`,
	stmtUnlockPairs: `
SELECT a, b, pg_advisory_unlock(a, b) FROM unnest($1::int[], $2::int[]) AS k(a, b)`,

	stmtOwnLocks: `
SELECT classid::bigint, objid::bigint, objsubid
FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND granted`,

	// Locks in the shared table, and nodes' locks among them; locks taken by the fast
	// path are not in it.
	stmtLockUsage: `
SELECT count(*), count(*) FILTER (WHERE locktype = 'advisory' AND pid IN (SELECT pid FROM {nodes}))
FROM pg_locks
WHERE NOT fastpath`,

	stmtAddRoles: `
INSERT INTO {terms} (role, lock_key)
SELECT r, k FROM unnest($1::text[], $2::text[]) AS c(r, k) ORDER BY r
ON CONFLICT DO NOTHING`,

	stmtKeyOwners: `
SELECT role, lock_key FROM {terms} WHERE lock_key = ANY ($1::text[])`,

	stmtRoleKeys: records.ReadKeysOfRoles,

	stmtLastTerms: `
SELECT role, term FROM {terms} WHERE role = ANY ($1::text[])`,

	// Closes the open terms of previous holders, as of their term_end, and returns the row
	// of every role. The rows are locked before they are read. A row that cannot be locked
	// is skipped: another session may be committing the end of the term.
	//
	// This statement commits separately, to end a stream of fenced transactions of the old
	// term. It need not be durable: the commit of the new term's begin also flushes this
	// one.
	stmtClose: `
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
), previous AS MATERIALIZED (
    SELECT * FROM {terms} WHERE role = ANY ($1::text[]) ORDER BY role FOR NO KEY UPDATE SKIP LOCKED
), closed AS (
    UPDATE {terms} t
    SET ended_at = {term_end}(
            n.last_heartbeat, n.lease_ms, coalesce(CASE WHEN n.death_seen THEN n.died_at END, d.since), clock_timestamp()),
        end_cause = CASE
            WHEN coalesce(CASE WHEN n.death_seen THEN n.died_at END, d.since) IS NULL
                AND {term_end}(n.last_heartbeat, n.lease_ms, NULL, NULL) > clock_timestamp()
            THEN '` + history.CauseUnobserved + `'
            ELSE ''
        END,
        last_seen = {last_sign}(n.last_heartbeat, t.acquired_at),
        end_reason = CASE
            WHEN (t.server_lineage, t.server_epoch) IS DISTINCT FROM ($3::text, $4::text) THEN 'server_changed'
            WHEN n.last_heartbeat + n.lease_ms * interval '1 millisecond' <= coalesce(n.died_at, d.since, clock_timestamp())
            THEN 'lease_expired'
            ELSE 'crashed'
        END
    FROM previous p
    LEFT JOIN {nodes} n ON n.id = p.node_id AND n.incarnation = p.incarnation
    LEFT JOIN unnest($5::int[], $6::timestamptz[]) AS d(session, since) ON d.session = p.incarnation,
        unnest($1::text[], $2::text[]) AS c(role, lock_key), durability
    WHERE t.role = p.role AND p.role = c.role AND p.lock_key = c.lock_key AND p.ended_at IS NULL AND p.term > 0
    RETURNING t.role, t.end_reason
)
SELECT
    p.role,
    p.lock_key,
    p.term,
    p.node_id,
    coalesce(p.lease_ms, 0),
    coalesce(p.server_lineage, ''),
    coalesce(p.server_epoch, ''),
    coalesce(closed.end_reason, p.end_reason, ''),
    p.reserved_for,
    CASE WHEN clock_timestamp() BETWEEN p.ended_at - (p.reserved_until - p.ended_at) AND p.reserved_until
        THEN 1000 * extract(epoch FROM p.reserved_until - clock_timestamp())
        ELSE 0
    END::double precision,
    EXISTS (SELECT FROM {nodes} n WHERE n.id = p.node_id)
FROM previous p
LEFT JOIN closed ON closed.role = p.role`,

	// For how long nodes may still trust sessions of earlier lives of the server. A
	// recorded death proves nothing: the server has forgotten the node's lock, so any
	// other node finds it free.
	stmtReunion: `
SELECT coalesce(1000 * extract(epoch FROM max(CASE
    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text)
    THEN greatest(last_heartbeat + lease_ms * interval '1 millisecond', trust_until)
    ELSE trust_until
END) - clock_timestamp()), 0)::double precision
FROM {nodes}`,

	stmtTake: `
SELECT taken, coalesce(number, 0), coalesce(last_number, 0), began_at, coalesce(vacant, -1), coalesce(left_ms, 0),
    coalesce(led_by, 0)
FROM {take}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,

	// A complete resignation. The rows are written before a lock is released: the
	// unlocking reads how many were written. So a successor that finds the lock free finds
	// the row locked until the end of the term is committed, and is notified only after
	// the commit. If the commit fails, the locks are released nevertheless, since
	// unlocking is not undone. The parts of the union run in their order: a node that sees
	// the sequence move finds the locks free.
	stmtResign: `
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
), ended AS (
    UPDATE {terms} t
    SET ended_at = clock_timestamp(),
        end_reason = c.reason,
        ended_by = c.requester,
        end_cause = c.cause,
        next_by = clock_timestamp() + c.next_ms * interval '1 millisecond',
        reserved_for = c.target,
        reserved_until = CASE
            WHEN c.target IS NOT NULL THEN clock_timestamp() + c.reserve_ms * interval '1 millisecond'
        END
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::uuid[], $5::bigint[], $11::text[], $12::text[], $13::bigint[])
            AS c(role, term, reason, target, reserve_ms, requester, cause, next_ms),
        durability
    WHERE t.role = c.role AND t.term = c.term AND t.node_id = $6 AND t.ended_at IS NULL
    RETURNING t.role
), written AS MATERIALIZED (
    SELECT count(*) FROM ended
)
SELECT pg_advisory_unlock(k) FROM written, unnest($7::bigint[]) k
UNION ALL
SELECT pg_advisory_unlock(a, b) FROM written, unnest($8::int[], $9::int[]) AS k(a, b)
UNION ALL
SELECT nextval({releases:regclass}) > 0 AND pg_notify($10::text, '` + link.RolesOnly + `') IS NOT NULL WHERE $10::text <> ''`,

	// Need not be durable: if the server forgets it, the next leader finds an open term
	// of another server.
	stmtEnd: `
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
UPDATE {terms} t
SET ended_at = clock_timestamp(),
    end_reason = c.reason,
    ended_by = c.requester,
    end_cause = c.cause,
    next_by = clock_timestamp() + c.next_ms * interval '1 millisecond',
    reserved_for = c.target,
    reserved_until = CASE
        WHEN c.target IS NOT NULL THEN clock_timestamp() + c.reserve_ms * interval '1 millisecond'
    END
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::uuid[], $5::bigint[], $7::text[], $8::text[], $9::bigint[])
        AS c(role, term, reason, target, reserve_ms, requester, cause, next_ms),
    durability
WHERE t.role = c.role AND t.term = c.term AND t.node_id = $6 AND t.ended_at IS NULL`,

	// For other nodes: locks were released in steps, or with an ended session.
	stmtReleased: `
SELECT nextval({releases:regclass}), pg_notify($1, '` + link.RolesOnly + `')`,

	stmtHolders: `
SELECT role, node_id FROM {terms} WHERE role = ANY ($1::text[]) AND node_id IS NOT NULL`,

	// The caller checks two things. The incarnation must equal the setting, which is
	// empty after DISCARD ALL. The installation must have the same id: keys are derived
	// from it, and protect nothing with another id.
	//
	// The last two columns:
	//
	//   - whether one of the three nodes before this one in the ring is silent, or has a
	//     false heartbeat (see CorrectTimes): their watches, and this node's, can be
	//     silent as well;
	//   - a role of $13 if another program has ended its term: the trigger against this
	//     can be disabled.
	stmtHeartbeat: `
UPDATE {nodes} n
SET last_heartbeat = clock_timestamp(),
    current_connections = $3,
    current_jobs = $4,
    cpu_usage = $5,
    memory_usage = $6,
    in_flight = $8
WHERE id = $1 AND incarnation = $2 AND status <> 'dead'
RETURNING
    coalesce(current_setting('tenure.incarnation', true), ''),
    EXISTS (SELECT FROM {installation} i WHERE i.id = $9),
    EXISTS (SELECT FROM {requests} r WHERE r.node_id = n.id),
    CASE WHEN $7::boolean THEN (
        SELECT ARRAY[
            count(*) FILTER (WHERE l.granted AND l.pid = pg_backend_pid()),
            count(*) FILTER (WHERE l.pid IN (SELECT pid FROM {nodes}))
        ]
        FROM pg_locks l
        WHERE l.locktype = 'advisory'
    ) END,
    CASE WHEN cardinality($11::int[]) > 0 THEN {ended}($10::int, $11::int[]) ELSE false END,
    (SELECT last_value FROM {releases}),
    (SELECT last_value FROM {membership}),
    EXISTS (
        SELECT
        FROM (
            (SELECT last_heartbeat, lease_ms FROM {nodes} WHERE status <> 'dead' AND incarnation < $2 ORDER BY incarnation DESC LIMIT 3)
            UNION ALL
            (SELECT last_heartbeat, lease_ms FROM {nodes} WHERE status <> 'dead' AND incarnation > $2 ORDER BY incarnation DESC LIMIT 3)
            LIMIT 3
        ) p
        WHERE clock_timestamp() NOT BETWEEN p.last_heartbeat - p.lease_ms * interval '1 millisecond'
            AND p.last_heartbeat + (p.lease_ms + $12::int) * interval '1 millisecond'
    ),
    (SELECT min(t.role) FROM {terms} t WHERE t.role = ANY ($13::text[]) AND (t.ended_at IS NOT NULL OR t.incarnation IS DISTINCT FROM $2))`,

	// Requests for the node stay until it has them, see stmtTaken: if the session is lost
	// before, the next one reads them. The others are for a term of this session.
	stmtRequests: `
WITH taken AS (
    DELETE FROM {requests}
    WHERE node_id = $1 AND role <> ''
    RETURNING kind, role, term, target, force, requested_by, requested_at, id
)
SELECT kind, role, term, target, force, requested_by, requested_at, id FROM taken
UNION ALL
SELECT kind, role, term, target, force, requested_by, requested_at, id FROM {requests} WHERE node_id = $1 AND role = ''`,

	// A node with a request to drain counts as draining from the request on, not only
	// from the update of its description: otherwise two operators draining the last two
	// nodes could each find the other node active. The latest requester is recorded as
	// the requester of the status. Earlier requests of the node, $3, change nothing: it
	// may have been undrained since.
	stmtTaken: `
WITH taken AS (
    DELETE FROM {requests} WHERE node_id = $1 AND id = ANY ($2::bigint[]) RETURNING kind, requested_by, id
)
UPDATE {nodes} n
SET status = 'draining', drained = false, status_by = latest.requested_by
FROM (SELECT kind, requested_by FROM taken WHERE id <> ALL ($3::bigint[]) ORDER BY id DESC LIMIT 1) latest
WHERE n.id = $1 AND latest.kind = 'drain' AND n.status IN ('joining', 'active')`,

	stmtAnswer: `
INSERT INTO {requests} (kind, role, term, node_id)
SELECT a.kind, a.role, a.offer, $4
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS a(kind, role, offer)`,

	// A notification need not be durable.
	stmtNotify: link.Notify,

	stmtLeave: `
DELETE FROM {nodes} WHERE id = $1 AND incarnation = $2`,

	// Only after the commit of a join, leave or death: a watcher must see the row when it
	// sees the sequence move.
	stmtMoved: `
SELECT nextval({membership:regclass}), pg_notify($1, $2)`,

	stmtCorrect: install.CorrectTimes,

	// Terminates the sessions of nodes after more than a lease of silence, if the server
	// did not end them. The held node lock counts, not the status of the node: a node
	// marked as dead may still have a session. The lock also proves two things: the
	// backend is the node's session, and belongs to this database. Its start is hidden
	// from users who may not terminate it. Sessions without a row are terminated if they
	// are among $4.
	stmtReap: `
SELECT l.objid::bigint::int, coalesce(n.name, ''), l.pid, pg_terminate_backend(l.pid)
FROM pg_locks l
LEFT JOIN {nodes} n ON n.incarnation = l.objid::bigint
LEFT JOIN LATERAL pg_stat_get_activity(l.pid) a ON a.datid = l.database
WHERE ` + nodeLocksOf + ` = $3::int::oid
    AND l.pid <> pg_backend_pid()
    AND coalesce(a.backend_start = n.backend_start, true)
    AND CASE
        WHEN n.id IS NULL THEN l.objid::bigint = ANY ($4::int[])
        ELSE n.id <> $1 AND n.last_heartbeat + (n.lease_ms + $2::int) * interval '1 millisecond' < clock_timestamp()
    END`,

	// Need not be durable: the node writes it again at its next join.
	stmtDescribe: `
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
UPDATE {nodes} n
SET status = $3,
    drained = $4,
    ip_address = $5,
    http_port = $6,
    grpc_port = $7,
    roles = $8,
    worker_capabilities = $9,
    labels = $10,
    version = $11,
    spreads = $12,
    status_by = $13
FROM durability
WHERE n.id = $1 AND n.incarnation = $2 AND n.status <> 'dead'
RETURNING n.id`,

	// As for a description. Only a row with another value is written.
	stmtWatching: `
WITH durability AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
UPDATE {nodes} n
SET watching = $3
FROM durability
WHERE n.id = $1 AND n.incarnation = $2 AND n.watching <> $3`,

	stmtWake: `
SELECT pg_cancel_backend($1)`,

	stmtMembers:   readRegistry,
	stmtMembersOf: readRegistryOfSome,

	// A reserved role is the target's before it leads.
	stmtLeading: `
SELECT t.role, t.term, CASE WHEN t.ended_at IS NULL THEN t.node_id ELSE t.reserved_for END, t.ended_at IS NOT NULL
FROM {terms} t
LEFT JOIN {nodes} n ON n.id = t.node_id AND n.incarnation = t.incarnation AND n.status <> 'dead'
WHERE t.role = ANY ($1::text[])
    AND CASE WHEN t.ended_at IS NULL THEN n.id IS NOT NULL
        ELSE t.reserved_for IS NOT NULL
            AND clock_timestamp() BETWEEN t.ended_at - (t.reserved_until - t.ended_at) AND t.reserved_until END
ORDER BY t.role COLLATE "C"`,
}

// The statements of opening a session, run once each.
const (
	// An empty table means that locks were lost. Two sessions may insert at the same
	// time; both read the row inserted first. If a life began later than now, it began
	// while the clock was ahead: its time counts from now.
	renewServer = `INSERT INTO {server} (id, by_migration) VALUES (gen_random_uuid(), false) ON CONFLICT DO NOTHING`
	readServer  = `
SELECT
    id,
    greatest(0, 1000 * extract(epoch FROM clock_timestamp() - created_at))::double precision,
    greatest(0, 1000 * extract(epoch FROM clock_timestamp() - greatest(created_at, pg_postmaster_start_time())))::double precision,
    by_migration,
    (SELECT coalesce(max(lease_ms), 0) FROM {nodes})
FROM {server}`

	// A replica can have lost the last values of the sequence, and a copy of the tables
	// may have none. So the numbers in its rows are skipped, $1 at a time.
	drawIncarnation = `
SELECT (SELECT max(nextval({incarnations:regclass})) FROM generate_series(1, $1::int))::int,
    (SELECT coalesce(max(incarnation), 0) FROM {nodes})`

	// The node's last session, and how long other nodes would still wait for it. The
	// server may still keep the session of a node marked as dead.
	readStaleSession = `
SELECT incarnation,
    (1000 * extract(epoch FROM
        least(last_heartbeat, clock_timestamp()) + (lease_ms + $2::int) * interval '1 millisecond' - clock_timestamp()))::double precision
FROM {nodes}
WHERE id = $1 AND (status <> 'dead' OR NOT pg_try_advisory_xact_lock_shared($3::int, incarnation))`
)
