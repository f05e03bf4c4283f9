package processor

// An epoch is never reused, not even if the row was deleted and created again.
const nextEpoch = `greatest(p.epoch + 1, floor(1000 * extract(epoch FROM clock_timestamp()))::bigint)`

// The statements on the rows of processors. A leader runs them in fenced
// transactions.
const (
	// No term has claimed the processor, because it could not begin. Its cursor means
	// nothing, unless an operator has moved it.
	addProcessor = `
INSERT INTO {processors} AS p (name, kind, role, cursor_transaction, cursor_position)
VALUES ($1, $2, $3, $4::text::xid8, $5)
ON CONFLICT (name) DO UPDATE
SET cursor_transaction = excluded.cursor_transaction, cursor_position = excluded.cursor_position
WHERE p.term = 0 AND p.generation = 0`

	addStuck = `
INSERT INTO {processors} (name, kind, role, log) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING`

	// Waits for open transactions with changes of the row.
	lockProcessor = `SELECT FROM {processors} WHERE name = $1 FOR NO KEY UPDATE`

	// The other role running the processor now, if there is one.
	readOwner = `
SELECT p.role, p.term, p.node_name
FROM {processors} p
JOIN {leaders} l ON l.role = p.role AND l.term = p.term
WHERE p.name = $1 AND p.role <> $2 AND l.lease_until > clock_timestamp()`

	// Records the attempt of another role to run it; not each attempt.
	recordRefusal = `
UPDATE {processors}
SET refused_role = $2, refused_node = $3, refused_at = clock_timestamp()
WHERE name = $1
    AND role <> $2
    AND (refused_role <> $2 OR refused_node <> $3
        OR refused_at NOT BETWEEN clock_timestamp() - interval '20 seconds' AND clock_timestamp() + interval '20 seconds')`

	claimProcessor = `
UPDATE {processors} p
SET kind = $2,
    role = $3,
    term = $4,
    node_id = $5,
    node_name = $6,
    can_rebuild = $7,
    log = $8,
    log_table = CASE WHEN cardinality(found.name) > 0 THEN found.name WHEN p.log = $8 THEN p.log_table ELSE '{}' END,
    log_columns = CASE WHEN cardinality(found.name) > 0 THEN $10::text[] WHEN p.log = $8 THEN p.log_columns ELSE '{}' END,
    refused_role = '',
    refused_node = '',
    refused_at = NULL,
    epoch = CASE WHEN p.lineage = server.lineage AND $11 IN ('', server.lineage) THEN p.epoch ELSE ` + nextEpoch + ` END,
    lineage = server.lineage
FROM (
    SELECT concat_ws('/',
        control.system_identifier,
        substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
        (SELECT id FROM {server})
    ) AS lineage
    FROM pg_control_system() control
) server, (
    SELECT ARRAY(
        SELECT unnest(ARRAY[n.nspname::text, c.relname::text])
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = to_regclass(nullif($9::text, ''))
    ) AS name
) found
WHERE p.name = $1
RETURNING server.lineage`

	startProcessor = `
UPDATE {processors} p
SET busy = p.status = 'active',
    system_identifier = CASE WHEN p.system_identifier = 0 THEN control.system_identifier ELSE p.system_identifier END,
    updated_at = clock_timestamp()
FROM pg_control_system() control
WHERE p.name = $1 AND p.role = $2 AND p.term = $3`

	// A row with a cursor that no event can have yet was restored: the term must claim it
	// again, which checks the log. A pause with more than twice its time left began while the
	// clock was ahead.
	readState = `
SELECT
    name,
    role = $2 AND term = $3 AND cursor_transaction < pg_snapshot_xmax(pg_current_snapshot()),
    status,
    busy,
    epoch,
    cursor_transaction::text::numeric::bigint,
    cursor_position,
    generation,
    rebuild,
    $4 OR EXISTS (SELECT FROM {dead_letters} d WHERE d.processor = name AND d.replay),
    stuck_since IS NOT NULL,
    errors,
    CASE WHEN errors > 0 THEN blamed ELSE 0 END,
    CASE WHEN clock_timestamp() BETWEEN last_error_at - (next_attempt_at - last_error_at) AND next_attempt_at
        THEN 1000 * extract(epoch FROM next_attempt_at - clock_timestamp())
        ELSE 0
    END::double precision
FROM {processors}
WHERE name = ANY ($1)`

	// Begins a transaction in one round trip. It holds a mark by which the next
	// leader can find and end it. Its locks do not outlive a paused process by
	// more than the trust window.
	beginFenced = `
BEGIN%[4]s;
SET LOCAL statement_timeout = %[1]d;
SET LOCAL lock_timeout = %[3]d;
SET LOCAL idle_in_transaction_session_timeout = %[1]d;
SELECT pg_advisory_xact_lock_shared(%[2]d)`

	// The cursor moves only from the beginning of the batch, under the term with the claim
	// of the processor, and only if no operator has moved it.
	moveCursor = `
UPDATE {processors}
SET cursor_transaction = $2::text::xid8,
    cursor_position = $3,
    processed = processed + $4,
    errors = CASE WHEN $4 > 0 THEN 0 ELSE errors END,
    next_attempt_at = CASE WHEN $4 > 0 THEN NULL ELSE next_attempt_at END,
    updated_at = clock_timestamp()
WHERE name = $1
    AND generation = $5
    AND role = $6
    AND term = $7
    AND cursor_transaction = $8::text::xid8
    AND cursor_position = $9
RETURNING status, rebuild`

	recordFailure = `
UPDATE {processors}
SET errors = errors + 1,
    blamed = $8,
    last_error = $2,
    last_error_at = clock_timestamp(),
    failing_transaction = $6::text::xid8,
    failing_position = $7,
    next_attempt_at = clock_timestamp() + $3 * interval '1 millisecond',
    status = CASE WHEN status = 'active' AND $4 THEN 'failed' ELSE status END,
    busy = busy AND NOT $4,
    updated_at = clock_timestamp()
WHERE name = $1
    AND generation = $5
    AND role = $9
    AND term = $10
    AND cursor_transaction = $11::text::xid8
    AND cursor_position = $12`

	// Locks the row if the processor is this term's.
	holdClaim = `SELECT FROM {processors} WHERE name = $1 AND role = $2 AND term = $3 FOR NO KEY UPDATE`

	// The open transactions of this processor, found by their mark.
	readOpen = `
SELECT a.pid, coalesce(a.state, ''), coalesce(a.wait_event_type || ' ' || a.wait_event, ''), left(coalesce(a.query, ''), 200)
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((l.classid::bigint << 32) | l.objid::bigint) = $1
    AND l.objsubid = 1
    AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start`

	addDeadLetter = `
INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
VALUES ($1, $2::text::xid8, $3, $4, $5, $6)
ON CONFLICT (processor, transaction_id, position) DO UPDATE
SET error = excluded.error,
    attempts = excluded.attempts,
    term = excluded.term,
    failed_at = clock_timestamp(),
    skipped_by = '',
    replay = false,
    replay_failed_at = NULL,
    replayed_at = NULL,
    dismissed_by = '',
    dismissed_at = NULL`

	// Records the processor as unable to work. A leader without its claim records it too,
	// but not after the end of its term.
	recordStuck = `
UPDATE {processors}
SET stuck_error = $4,
    stuck_since = coalesce(stuck_since, clock_timestamp() - $5 * interval '1 millisecond'),
    stuck_errors = stuck_errors + 1,
    last_error = CASE WHEN errors > 0 THEN last_error ELSE $4 END,
    last_error_at = CASE WHEN errors > 0 THEN last_error_at ELSE clock_timestamp() END
WHERE name = $1 AND (term = 0 OR role = $2 AND term <= $3)`

	recordWorking = `
UPDATE {processors} SET stuck_error = '', stuck_since = NULL, stuck_errors = 0 WHERE name = $1 AND role = $2 AND term = $3`

	countPanic = `UPDATE {processors} SET panics = panics + 1 WHERE name = $1`

	// The index of requested replays has this order. A pass continues after the last dead
	// letter, because entries of earlier ones stay in the index until VACUUM.
	nextReplays = `
SELECT id, transaction_id, position
FROM {dead_letters}
WHERE processor = $1 AND replay AND (transaction_id, position) > ($2::text::xid8, $3::bigint)
ORDER BY transaction_id, position
LIMIT $4`

	// A condition on replay where the ids are found would let the server read all requested
	// replays: its statistics are older than the request.
	markReplayed = `
WITH found AS MATERIALIZED (
    SELECT id, replay FROM {dead_letters} WHERE id = ANY ($1) ORDER BY id FOR UPDATE
)
UPDATE {dead_letters} d
SET replay = false, replayed_at = clock_timestamp()
FROM found
WHERE d.id = found.id AND found.replay`

	// The first failure of a request is an entry of the audit: thousands of dead letters can
	// fail.
	replayFailed = `
WITH found AS MATERIALIZED (
    SELECT id, replay FROM {dead_letters} WHERE id = ANY ($1) ORDER BY id FOR UPDATE
), failed AS (
    UPDATE {dead_letters} d
    SET replay = false,
        replay_failed_at = clock_timestamp(),
        error = $2,
        attempts = attempts + 1,
        term = $3,
        failed_at = clock_timestamp()
    FROM found
    WHERE d.id = found.id AND found.replay
    RETURNING d.id, d.processor, d.replay_by, d.replay_requested_at
)
INSERT INTO {changes} (changed_by, kind, name, action, detail)
SELECT f.replay_by, 'processor', f.processor, 'replay_failed', 'dead letter ' || f.id || ': ' || $2
FROM failed f
WHERE (
        SELECT c.id
        FROM {changes} c
        WHERE c.at >= f.replay_requested_at AND c.kind = 'processor' AND c.name = f.processor AND c.action = 'replay_failed'
        ORDER BY c.at
        LIMIT 1
    ) IS NULL`

	readCursors = `
SELECT name, cursor_transaction, cursor_position
FROM {processors}
WHERE name = ANY ($1::text[]) AND role = $2 AND term = $3`

	// Records measurements with their ages in milliseconds.
	recordLags = `
INSERT INTO {processor_lags} AS g (processor, behind, behind_more, held, waiting_since, measured_at)
SELECT m.name, m.behind, m.more, m.held, m.since, clock_timestamp() - m.age * interval '1 millisecond'
FROM unnest($1::text[], $2::bigint[], $3::boolean[], $4::bigint[], $5::timestamptz[], $6::double precision[])
    AS m (name, behind, more, held, since, age)
JOIN {processors} p ON p.name = m.name AND p.role = $7 AND p.term = $8
ORDER BY m.name
ON CONFLICT (processor) DO UPDATE
SET behind = excluded.behind,
    behind_more = excluded.behind_more,
    held = excluded.held,
    waiting_since = excluded.waiting_since,
    measured_at = excluded.measured_at`

	// Records whether a batch may be in flight. None may if an operator has paused the
	// processor.
	setBusy = `
UPDATE {processors}
SET busy = $2 AND status = 'active'
WHERE name = $1 AND term = $3 AND role = $4
RETURNING busy`

	finishRebuild = `
UPDATE {processors}
SET cursor_transaction = '0',
    cursor_position = 0,
    generation = generation + 1,
    rebuild = false,
    status = CASE WHEN status = 'failed' THEN 'active' ELSE status END,
    processed = 0,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
WHERE name = $1 AND rebuild AND generation = $2 AND role = $3 AND term = $4`

	forgetAllDeadLetters = `DELETE FROM {dead_letters} WHERE processor = $1`

	recordForeign = `
UPDATE {processors}
SET status = CASE WHEN status = 'active' THEN 'failed' ELSE status END,
    busy = false,
    last_error = $2,
    last_error_at = clock_timestamp(),
    updated_at = clock_timestamp()
WHERE name = $1
    AND role = $3
    AND term = $4
    AND generation = $5
    AND (status = 'active' OR last_error <> $2)`
)
