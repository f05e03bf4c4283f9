package processor

// The statements of a repair. Statements on a log are templates for its table and its
// columns for transaction id and position.
const (
	findLog = `SELECT log, log_table, log_columns FROM {processors} WHERE name = $1`

	boundLock = `SET LOCAL lock_timeout = '5s'`

	lockLog = `LOCK TABLE %[1]s IN EXCLUSIVE MODE`

	findProcessors = `
SELECT
    p.name,
    p.log,
    CASE
        WHEN cardinality(p.log_table) = 2 THEN to_regclass(format('%I.%I', p.log_table[1], p.log_table[2])) IS NOT DISTINCT FROM to_regclass($1)
        ELSE false
    END,
    cardinality(p.log_table) = 0,
    p.system_identifier NOT IN (0, control.system_identifier)
        OR p.cursor_transaction >= pg_snapshot_xmax(pg_current_snapshot())
FROM {processors} p, pg_control_system() control
ORDER BY p.name
FOR UPDATE OF p`

	findAhead = `SELECT EXISTS (SELECT FROM %[1]s WHERE %[2]s >= pg_snapshot_xmax(pg_current_snapshot()))`

	// The events in their target order. The writing transactions of the rows show the
	// restored events. If a transaction wrote a row with a higher id than its own, or rows
	// with several ids, it was a restore; later ones were not. Consecutive events with
	// increasing positions can share one id; they form a run.
	orderEvents = `
CREATE TEMPORARY TABLE tenure_repair ON COMMIT DROP AS
WITH counter AS (
    SELECT pg_current_xact_id()::text::bigint AS present
), events AS (
    SELECT
        log.%[2]s::text::bigint AS was,
        log.%[3]s::bigint AS position,
        present - mod(mod(present - log.xmin::text::bigint, 4294967296) + 4294967296, 4294967296) AS writer
    FROM %[1]s log, counter
), restores AS (
    SELECT writer
    FROM events
    GROUP BY writer
    HAVING max(was) > writer OR min(was) <> max(was)
), marked AS (
    SELECT was, position, writer > (SELECT max(writer) FROM restores) AS later
    FROM events
), compared AS (
    SELECT
        *,
        row_number() OVER ordered AS number,
        coalesce(position <= lag(position) OVER ordered, false) AS begins
    FROM marked
    WINDOW ordered AS (ORDER BY coalesce(later, false), was, position)
)
SELECT was, position, later, number, count(*) FILTER (WHERE begins) OVER (ORDER BY number) AS run
FROM compared`

	analyzeEvents = `ANALYZE tenure_repair`

	// Ids can be kept if all of them have been assigned and later events have higher ones.
	// New ids must belong to ended transactions, and 3 is the first id of a cluster.
	planRepair = `
SELECT
    next,
    coalesce(last_was < horizon AND NOT mixed, true),
    horizon - 1 - runs,
    greatest(CASE WHEN coalesce(last_was < horizon AND NOT mixed, true) THEN 0 ELSE runs + 4 - horizon END, 0),
    CASE WHEN positions < events THEN $1::bigint ELSE 0 END
FROM (
    SELECT
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
        max(was) AS last_was,
        coalesce(max(was) FILTER (WHERE NOT later) >= min(was) FILTER (WHERE later), false) AS mixed,
        coalesce(max(run), 0) AS runs,
        count(*) AS events,
        count(DISTINCT position) AS positions
    FROM tenure_repair
) seen`

	consumeIDs = `
DO $consume$
BEGIN
    FOR i IN 1..%d LOOP
        PERFORM pg_catalog.pg_current_xact_id();
        COMMIT;
    END LOOP;
END
$consume$`

	// An update must not collide with another event. A collision is possible only if
	// positions repeat: then ids are shifted away first and back afterwards.
	repairShift = int64(1) << 62

	renumberEvents = `
UPDATE %[1]s log
SET %[2]s = ($1::bigint + $2::bigint + r.run)::text::xid8
FROM tenure_repair r
WHERE log.%[2]s = r.was::text::xid8 AND log.%[3]s = r.position`

	renumberDeadLetters = `
UPDATE {dead_letters} d
SET transaction_id = ($2::bigint + $3::bigint + r.run)::text::xid8
FROM tenure_repair r
WHERE d.processor = ANY ($1::text[]) AND d.transaction_id = r.was::text::xid8 AND d.position = r.position`

	shiftEvents = `
UPDATE %[1]s SET %[2]s = (%[2]s::text::bigint - $1::bigint)::text::xid8 WHERE %[2]s >= $1::bigint::text::xid8`

	shiftDeadLetters = `
UPDATE {dead_letters}
SET transaction_id = (transaction_id::text::bigint - $2::bigint)::text::xid8
WHERE processor = ANY ($1::text[]) AND transaction_id >= $2::bigint::text::xid8`

	// A cursor moves to the end of the events handled without a gap. A cursor from another
	// cluster says nothing about events appended in this one, except if it is at one of
	// them: then pg_upgrade created this cluster from the other one.
	moveCursors = `
UPDATE {processors} p
SET cursor_transaction = coalesce(moved.transaction, 0)::text::xid8,
    cursor_position = coalesce(moved.position, 0),
    generation = generation + 1,
    system_identifier = moved.system_identifier,
    status = CASE WHEN status = 'failed' THEN 'active' ELSE status END,
    errors = 0,
    failing_transaction = NULL,
    failing_position = NULL,
    last_error = '',
    epoch = ` + nextEpoch + `,
    next_attempt_at = NULL,
    updated_at = clock_timestamp()
FROM (
    SELECT cursors.name, cursors.system_identifier, last.transaction, last.position
    FROM (
        SELECT
            m.name,
            control.system_identifier,
            m.cursor_transaction::text::bigint AS transaction,
            m.cursor_position AS position,
            m.cursor_transaction::text::bigint >= $4::bigint AS ahead,
            m.system_identifier = control.system_identifier AND m.cursor_transaction::text::bigint < $4::bigint
                OR EXISTS (
                    SELECT
                    FROM tenure_repair r
                    WHERE r.later AND (r.was, r.position) = (m.cursor_transaction::text::bigint, m.cursor_position)
                ) AS trusted
        FROM {processors} m, pg_control_system() control
        WHERE m.name = ANY ($1::text[])
    ) cursors
    LEFT JOIN LATERAL (
        SELECT CASE WHEN $2::boolean THEN r.was ELSE $3::bigint + r.run END AS transaction, r.position
        FROM tenure_repair r
        WHERE r.number < coalesce((
            SELECT min(u.number)
            FROM tenure_repair u
            WHERE (u.was, u.position) > (cursors.transaction, cursors.position)
                OR NOT cursors.trusted AND coalesce(u.later, cursors.ahead)
        ), 9223372036854775807)
        ORDER BY r.number DESC
        LIMIT 1
    ) last ON true
) moved
WHERE p.name = moved.name`
)
