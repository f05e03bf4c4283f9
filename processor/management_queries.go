package processor

// The statements of people. Each change is recorded in the transaction that
// makes it.
const (
	listProcessors = `
SELECT
    p.name,
    p.kind,
    p.role,
    p.status,
    p.cursor_transaction::text::numeric::bigint,
    p.cursor_position,
    p.term,
    p.node_id,
    p.node_name,
    p.term > 0 AND EXISTS (
        SELECT
        FROM {leaders} l
        WHERE l.role = p.role AND l.term = p.term AND l.lease_until > clock_timestamp()
    ),
    p.busy,
    p.rebuild,
    p.processed,
    p.behind,
    p.waiting_since,
    p.errors,
    p.last_error,
    p.last_error_at,
    p.next_attempt_at,
    (SELECT count(*) FROM {dead_letters} d WHERE d.processor = p.name AND d.replayed_at IS NULL),
    p.updated_at
FROM {processors} p
WHERE cardinality($1::text[]) = 0 OR p.name = ANY ($1)
ORDER BY p.name COLLATE "C"`

	recordChange = `
INSERT INTO {changes} (changed_by, kind, name, action, detail) VALUES ($1, 'processor', $2, $3, $4)`

	pauseProcessor = `
UPDATE {processors} SET status = 'paused', updated_at = clock_timestamp() WHERE name = $1 RETURNING name`

	resumeProcessor = `
UPDATE {processors}
SET status = 'active', updated_at = clock_timestamp()
WHERE name = $1 AND status = 'paused'
RETURNING name`

	// A pause stays one.
	retryProcessor = `
UPDATE {processors}
SET status = CASE WHEN status = 'failed' THEN 'active' ELSE status END,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
WHERE name = $1
RETURNING name`

	rewindProcessor = `
UPDATE {processors}
SET cursor_transaction = $2::text::xid8,
    cursor_position = $3,
    generation = generation + 1,
    errors = 0,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
WHERE name = $1
RETURNING name`

	rebuildProcessor = `
UPDATE {processors}
SET rebuild = true, next_attempt_at = NULL, updated_at = clock_timestamp()
WHERE name = $1 AND can_rebuild
RETURNING name`

	notifyAll = `SELECT pg_notify($1, '')`
)
