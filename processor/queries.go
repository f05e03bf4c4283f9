package processor

// The statements on the rows of processors. Those that a leader makes are fenced
// by their transactions.
const (
	addProcessor = `
INSERT INTO {processors} (name, kind, role, can_rebuild) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind,
    role = excluded.role,
    can_rebuild = excluded.can_rebuild`

	// Transactions of earlier terms, which cannot commit any more, may still
	// hold locks that a batch needs.
	endForerunners = `
SELECT count(pg_terminate_backend(pid))
FROM pg_locks
WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = $1
    AND objsubid = 1
    AND pid <> pg_backend_pid()`

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
    errors,
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
    last_error = $2,
    last_error_at = clock_timestamp(),
    next_attempt_at = clock_timestamp() + $3 * interval '1 millisecond',
    status = CASE WHEN status = 'active' AND $4 THEN 'failed' ELSE status END,
    busy = busy AND NOT $4,
    updated_at = clock_timestamp()
WHERE name = $1 AND generation = $5`

	addDeadLetter = `
INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
VALUES ($1, $2::text::xid8, $3, $4, $5, $6)
ON CONFLICT (processor, transaction_id, position) DO UPDATE
SET error = excluded.error, attempts = excluded.attempts, term = excluded.term, failed_at = clock_timestamp(), replayed_at = NULL`

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

	// A log that was restored into another cluster, or a cursor from another
	// one, cannot be compared with this cluster's transactions.
	checkLog = `
SELECT
    control.system_identifier,
    p.system_identifier,
    p.cursor_transaction >= pg_snapshot_xmax(pg_current_snapshot())
FROM {processors} p, pg_control_system() control
WHERE p.name = $1`
)
