package retention

import (
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
)

// beginBounded begins a transaction that the server ends if the process is paused, so that
// it does not keep its locks and the horizon.
const beginBounded = `
BEGIN;
SET LOCAL statement_timeout = %[1]d;
SET LOCAL lock_timeout = %[1]d;
SET LOCAL idle_in_transaction_session_timeout = %[1]d`

// Each statement deletes rows older than $1 milliseconds, the oldest first and at most $2
// of them, adds them to the daily totals, and returns their number. It skips rows that
// another transaction has locked.
var statements = []struct {
	what string
	of   *schema.Feature // the owner of the table; nil for the core
	sql  string
}{
	{"terms", nil, `
WITH old AS (
    DELETE FROM {history} h
    USING (
        SELECT role, term
        FROM {history}
        WHERE ended_at < clock_timestamp() - $1 * interval '1 millisecond'
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
SELECT count(*) FROM old`},

	{"changes of nodes", nil, `
WITH old AS (
    DELETE FROM {node_history} h
    USING (SELECT id, at FROM {node_history} ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) oldest
    WHERE h.id = oldest.id AND oldest.at < clock_timestamp() - $1 * interval '1 millisecond'
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
SELECT count(*) FROM old`},

	// An unfinished run is kept, however old it is.
	{"runs", features.Schedules, `
WITH old AS (
    DELETE FROM {runs} r
    USING (
        SELECT id, claimed_at
        FROM {runs}
        WHERE state NOT IN ('waiting', 'running')
        ORDER BY id
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ) oldest
    WHERE r.id = oldest.id AND oldest.claimed_at < clock_timestamp() - $1 * interval '1 millisecond'
    RETURNING r.schedule, r.scheduled_for, r.state, r.ticks,
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
SELECT count(*) FROM old`},

	// Manual changes have no daily totals.
	{"changes by hand", features.Changes, `
WITH old AS (
    DELETE FROM {changes} c
    USING (SELECT id, at FROM {changes} ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED) oldest
    WHERE c.id = oldest.id AND oldest.at < clock_timestamp() - $1 * interval '1 millisecond'
    RETURNING c.id
)
SELECT count(*) FROM old`},
}
