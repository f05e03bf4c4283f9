package retention

import (
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/sweeps"
)

// beginBounded begins a transaction with a limit: if the process is paused, the server
// ends the transaction, with its locks and its hold on the horizon.
const beginBounded = `
BEGIN;
SET LOCAL statement_timeout = %[1]d;
SET LOCAL lock_timeout = %[1]d;
SET LOCAL idle_in_transaction_session_timeout = %[1]d`

// readAge returns the limit of age: rows before this time are old.
const readAge = `SELECT clock_timestamp() - $1 * interval '1 millisecond'`

// Each statement deletes rows of before $1 and from $3 on, the oldest first and at most $2
// of them, adds them to the daily totals, and returns their number and the time of the
// newest. It skips rows locked by another transaction. An index has the time: a batch
// reads only the rows it deletes. $3 is the end of the last batch: otherwise each batch
// would read the index entries of all earlier ones, until a vacuum.
var statements = []struct {
	what string
	of   *schema.Feature // the owner of the table; nil for the core
	sql  string
}{
	{sweeps.Terms, nil, `
WITH old AS (
    DELETE FROM {history} h
    USING (
        SELECT role, term
        FROM {history}
        WHERE ended_at < $1 AND ended_at >= $3
        ORDER BY ended_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ) oldest
    WHERE h.role = oldest.role AND h.term = oldest.term
    RETURNING h.role, h.acquired_at, h.ended_at, h.end_reason, coalesce(h.vacant_ms, 0) AS vacant_ms
), summed AS (
    INSERT INTO {term_days} AS d (day, role, terms, unclean, led_ms, vacant_ms, longest_vacant_ms)
    SELECT
        (ended_at AT TIME ZONE 'UTC')::date,
        role,
        count(*),
        count(*) FILTER (WHERE end_reason IN ('crashed', 'lease_expired', 'server_changed')),
        sum(1000 * extract(epoch FROM ended_at - acquired_at)),
        sum(vacant_ms),
        max(vacant_ms)
    FROM old
    GROUP BY 1, 2
    ORDER BY 1, 2
    ON CONFLICT (day, role) DO UPDATE
    SET terms = d.terms + excluded.terms,
        unclean = d.unclean + excluded.unclean,
        led_ms = d.led_ms + excluded.led_ms,
        vacant_ms = d.vacant_ms + excluded.vacant_ms,
        longest_vacant_ms = greatest(d.longest_vacant_ms, excluded.longest_vacant_ms)
)
SELECT count(*), coalesce(max(ended_at), $3) FROM old`},

	{sweeps.NodeChanges, nil, `
WITH old AS (
    DELETE FROM {node_history} h
    USING (SELECT id FROM {node_history} WHERE at < $1 AND at >= $3 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) oldest
    WHERE h.id = oldest.id
    RETURNING h.at, h.status, h.previous
), summed AS (
    INSERT INTO {node_days} AS d (day, came, went, died)
    SELECT
        (at AT TIME ZONE 'UTC')::date,
        count(*) FILTER (WHERE previous = ''),
        count(*) FILTER (WHERE status = 'left'),
        count(*) FILTER (WHERE status = 'dead')
    FROM old
    GROUP BY 1
    ORDER BY 1
    ON CONFLICT (day) DO UPDATE
    SET came = d.came + excluded.came,
        went = d.went + excluded.went,
        died = d.died + excluded.died
)
SELECT count(*), coalesce(max(at), $3) FROM old`},

	// An unfinished run is kept, however old it is. A run of an old tick counts by its end:
	// an operator can request it at any time.
	{sweeps.Runs, features.Schedules, `
WITH old AS (
    DELETE FROM {runs} r
    USING (
        SELECT id
        FROM {runs}
        WHERE ended_at < $1 AND ended_at >= $3 AND state NOT IN ('waiting', 'running')
        ORDER BY ended_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ) oldest
    WHERE r.id = oldest.id
    RETURNING r.schedule, r.scheduled_for, r.state, r.ticks, r.ended_at,
        coalesce(1000 * extract(epoch FROM r.ended_at - r.started_at), 0) AS ran_ms
), summed AS (
    INSERT INTO {run_days} AS d (day, schedule, succeeded, failed, missed, ran_ms, longest_ms)
    SELECT
        (scheduled_for AT TIME ZONE 'UTC')::date,
        schedule,
        count(*) FILTER (WHERE state = 'succeeded'),
        count(*) FILTER (WHERE state IN ('failed', 'timed_out', 'panicked', 'abandoned')),
        coalesce(sum(ticks) FILTER (WHERE state IN ('missed', 'skipped')), 0),
        sum(ran_ms),
        max(ran_ms)
    FROM old
    GROUP BY 1, 2
    ORDER BY 1, 2
    ON CONFLICT (day, schedule) DO UPDATE
    SET succeeded = d.succeeded + excluded.succeeded,
        failed = d.failed + excluded.failed,
        missed = d.missed + excluded.missed,
        ran_ms = d.ran_ms + excluded.ran_ms,
        longest_ms = greatest(d.longest_ms, excluded.longest_ms)
)
SELECT count(*), coalesce(max(ended_at), $3) FROM old`},

	// Manual changes have no daily totals.
	{sweeps.Changes, features.Changes, `
WITH old AS (
    DELETE FROM {changes} c
    USING (SELECT id FROM {changes} WHERE at < $1 AND at >= $3 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) oldest
    WHERE c.id = oldest.id
    RETURNING c.at
)
SELECT count(*), coalesce(max(at), $3) FROM old`},

	// An open dead letter is kept, however old it is. Settled ones have no daily totals.
	{sweeps.DeadLetters, features.Processors, `
WITH old AS (
    DELETE FROM {dead_letters} d
    USING (
        SELECT id
        FROM {dead_letters}
        WHERE coalesce(replayed_at, dismissed_at) < $1 AND coalesce(replayed_at, dismissed_at) >= $3
        ORDER BY coalesce(replayed_at, dismissed_at)
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ) oldest
    WHERE d.id = oldest.id
    RETURNING coalesce(d.replayed_at, d.dismissed_at) AS settled_at
)
SELECT count(*), coalesce(max(settled_at), $3) FROM old`},
}

// recordSweep records the end of a search for rows of the kind $1: with the error $4 or,
// if it is empty, with no old rows left.
const recordSweep = `
INSERT INTO {rollup_states} AS s (kind, keep_ms, interval_ms, swept_at, errors, failing_since, last_error)
SELECT $1, $2, $3, CASE WHEN e.text = '' THEN now.at END, (e.text <> '')::integer, CASE WHEN e.text <> '' THEN now.at END, e.text
FROM (SELECT $4::text AS text) e, (SELECT clock_timestamp() AS at) now
ON CONFLICT (kind) DO UPDATE
SET keep_ms = excluded.keep_ms,
    interval_ms = excluded.interval_ms,
    swept_at = coalesce(excluded.swept_at, s.swept_at),
    errors = CASE WHEN excluded.errors = 0 THEN 0 ELSE s.errors + 1 END,
    failing_since = CASE WHEN excluded.errors > 0 THEN coalesce(s.failing_since, excluded.failing_since) END,
    last_error = excluded.last_error`
