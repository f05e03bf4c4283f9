package processor

// The statements on the rows of processors. Those that a leader makes are fenced
// by their transactions.
const (
	addProcessor = `
INSERT INTO {processors} AS p (name, kind, role, can_rebuild, log, log_table, log_columns)
SELECT $1, $2, $3, $4, $5, found.name, CASE WHEN cardinality(found.name) > 0 THEN $7::text[] ELSE '{}' END
FROM (
    SELECT ARRAY(
        SELECT unnest(ARRAY[n.nspname::text, c.relname::text])
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = to_regclass(nullif($6::text, ''))
    ) AS name
) found
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind,
    role = excluded.role,
    can_rebuild = excluded.can_rebuild,
    log = excluded.log,
    log_table = CASE WHEN excluded.log = p.log AND excluded.log_table = '{}' THEN p.log_table ELSE excluded.log_table END,
    log_columns = CASE WHEN excluded.log = p.log AND excluded.log_table = '{}' THEN p.log_columns ELSE excluded.log_columns END`

	claimProcessor = `
UPDATE {processors} p
SET term = $2,
    node_id = $3,
    node_name = $4,
    busy = p.status = 'active',
    system_identifier = CASE WHEN p.system_identifier = 0 THEN control.system_identifier ELSE p.system_identifier END,
    updated_at = clock_timestamp()
FROM pg_control_system() control
WHERE p.name = $1`

	readState = `
SELECT
    status,
    cursor_transaction::text::numeric::bigint,
    cursor_position,
    generation,
    rebuild,
    EXISTS (SELECT FROM {dead_letters} d WHERE d.processor = $1 AND d.replay),
    errors,
    CASE WHEN errors > 0 THEN blamed ELSE 0 END,
    coalesce(1000 * extract(epoch FROM next_attempt_at - clock_timestamp()), 0)::double precision
FROM {processors}
WHERE name = $1`

	// Begins a transaction, in one round trip, that holds a mark by which the
	// next leader can find and end it, and whose locks do not outlive a process
	// that stops for longer than a term can be trusted.
	beginFenced = `
BEGIN;
SET LOCAL statement_timeout = %[1]d;
SET LOCAL lock_timeout = %[1]d;
SET LOCAL idle_in_transaction_session_timeout = %[1]d;
SELECT pg_advisory_xact_lock_shared(%[2]d)`

	// The cursor does not move if somebody has moved it meanwhile. Progress may be
	// told twice, when it is not known whether it was taken the first time.
	moveCursor = `
UPDATE {processors}
SET cursor_transaction = $2::text::xid8,
    cursor_position = $3,
    processed = processed + CASE WHEN (cursor_transaction, cursor_position) < ($2::text::xid8, $3) THEN $4 ELSE 0 END,
    errors = CASE WHEN $4 > 0 THEN 0 ELSE errors END,
    next_attempt_at = CASE WHEN $4 > 0 THEN NULL ELSE next_attempt_at END,
    updated_at = clock_timestamp()
WHERE name = $1 AND generation = $5
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
WHERE name = $1 AND generation = $5`

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
    replayed_at = NULL`

	reportError = `
UPDATE {processors}
SET last_error = $3,
    last_error_at = clock_timestamp()
WHERE name = $1 AND term = $2`

	countPanic = `UPDATE {processors} SET panics = panics + 1 WHERE name = $1`

	nextReplay = `
SELECT id, transaction_id, position
FROM {dead_letters}
WHERE processor = $1 AND replay
ORDER BY transaction_id, position
LIMIT 1`

	markReplayed = `
UPDATE {dead_letters} SET replay = false, replayed_at = clock_timestamp() WHERE id = $1 AND replay`

	replayFailed = `
UPDATE {dead_letters}
SET replay = false,
    error = $2,
    attempts = attempts + 1,
    term = $3,
    failed_at = clock_timestamp()
WHERE id = $1 AND replay`

	// Written only if it says something new. Where the row has changed since, that
	// it was looked at is new too.
	recordLag = `
UPDATE {processors}
SET behind = $3,
    behind_more = $4,
    held = $5,
    waiting_since = $6,
    measured_at = clock_timestamp()
WHERE name = $1
    AND term = $2
    AND ((behind, behind_more, held, waiting_since) IS DISTINCT FROM ($3::bigint, $4::boolean, $5::bigint, $6::timestamptz)
        OR $3 > 0 AND (measured_at IS NULL OR measured_at < updated_at))`

	// Says that no batch is in flight, or that one may be.
	setBusy = `UPDATE {processors} SET busy = $2 AND status = 'active' WHERE name = $1 AND term = $3`

	finishRebuild = `
UPDATE {processors}
SET cursor_transaction = '0',
    cursor_position = 0,
    generation = generation + 1,
    rebuild = false,
    processed = 0,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
WHERE name = $1 AND rebuild`

	forgetAllDeadLetters = `DELETE FROM {dead_letters} WHERE processor = $1`

	recordForeign = `
UPDATE {processors}
SET status = CASE WHEN status = 'active' THEN 'failed' ELSE status END,
    busy = false,
    last_error = $2,
    last_error_at = clock_timestamp(),
    updated_at = clock_timestamp()
WHERE name = $1 AND (status = 'active' OR last_error <> $2)`
)
