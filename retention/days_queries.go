package retention

import (
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
)

// totals selects daily totals and rows not yet rolled up, from the tables of several
// features. $1 is the first day, $2 the day after the last one and $3 a name; null and the
// empty text select all. $4 is the limit.
type totals struct {
	selected string // from the rows of all parts, as %s
	parts    []part
}

// part selects the rows of one feature, or of the core if of is nil.
type part struct {
	of  *schema.Feature
	sql string
}

var (
	roleDays = totals{`
SELECT day, role, sum(terms)::bigint, sum(unclean)::bigint, sum(led_ms), sum(vacant_ms), max(longest_vacant_ms)
FROM (%s) d (day, role, terms, unclean, led_ms, vacant_ms, longest_vacant_ms)
GROUP BY day, role
ORDER BY day DESC, role
LIMIT $4`, []part{
		{features.Rollups, `
    SELECT day, role, terms, unclean, led_ms, vacant_ms, longest_vacant_ms
    FROM {term_days}
    WHERE ($1::date IS NULL OR day >= $1) AND ($2::date IS NULL OR day < $2) AND $3 IN ('', role)`},
		{nil, `
    SELECT
        (ended_at AT TIME ZONE 'UTC')::date,
        role,
        1,
        CASE WHEN end_reason IN ('crashed', 'lease_expired', 'server_changed') THEN 1 ELSE 0 END,
        1000 * extract(epoch FROM ended_at - acquired_at),
        coalesce(vacant_ms, 0),
        coalesce(vacant_ms, 0)
    FROM {history}
    WHERE ($1::date IS NULL OR ended_at >= $1::date::timestamp AT TIME ZONE 'UTC')
        AND ($2::date IS NULL OR ended_at < $2::date::timestamp AT TIME ZONE 'UTC')
        AND $3 IN ('', role)`},
	}}

	nodeDays = totals{`
SELECT day, sum(came)::bigint, sum(went)::bigint, sum(died)::bigint
FROM (%s) d (day, came, went, died)
WHERE $3 = ''
GROUP BY day
ORDER BY day DESC
LIMIT $4`, []part{
		{features.Rollups, `
    SELECT day, came, went, died
    FROM {node_days}
    WHERE ($1::date IS NULL OR day >= $1) AND ($2::date IS NULL OR day < $2)`},
		{nil, `
    SELECT
        (at AT TIME ZONE 'UTC')::date,
        CASE WHEN previous = '' THEN 1 ELSE 0 END,
        CASE WHEN status = 'left' THEN 1 ELSE 0 END,
        CASE WHEN status = 'dead' THEN 1 ELSE 0 END
    FROM {node_history}
    WHERE ($1::date IS NULL OR at >= $1::date::timestamp AT TIME ZONE 'UTC')
        AND ($2::date IS NULL OR at < $2::date::timestamp AT TIME ZONE 'UTC')`},
	}}

	scheduleDays = totals{`
SELECT day, schedule, sum(succeeded)::bigint, sum(failed)::bigint, sum(missed)::bigint, sum(ran_ms), max(longest_ms)
FROM (%s) d (day, schedule, succeeded, failed, missed, ran_ms, longest_ms)
GROUP BY day, schedule
ORDER BY day DESC, schedule
LIMIT $4`, []part{
		{features.Rollups, `
    SELECT day, schedule, succeeded, failed, missed, ran_ms, longest_ms
    FROM {run_days}
    WHERE ($1::date IS NULL OR day >= $1) AND ($2::date IS NULL OR day < $2) AND $3 IN ('', schedule)`},
		{features.Schedules, `
    SELECT
        (scheduled_for AT TIME ZONE 'UTC')::date,
        schedule,
        CASE WHEN state = 'succeeded' THEN 1 ELSE 0 END,
        CASE WHEN state IN ('failed', 'timed_out', 'panicked', 'abandoned') THEN 1 ELSE 0 END,
        CASE WHEN state IN ('missed', 'skipped') THEN ticks ELSE 0 END,
        coalesce(1000 * extract(epoch FROM ended_at - started_at), 0),
        coalesce(1000 * extract(epoch FROM ended_at - started_at), 0)
    FROM {runs}
    WHERE state NOT IN ('waiting', 'running')
        AND ($1::date IS NULL OR scheduled_for >= $1::date::timestamp AT TIME ZONE 'UTC')
        AND ($2::date IS NULL OR scheduled_for < $2::date::timestamp AT TIME ZONE 'UTC')
        AND $3 IN ('', schedule)`},
	}}

	metricDays = totals{`
SELECT day, metric, labels, kind, samples, total, coalesce(least, 0), coalesce(greatest, 0)
FROM (%s) d
ORDER BY day DESC, metric, labels
LIMIT $4`, []part{
		{features.Samples, `
    SELECT day, metric, labels, kind, samples, total, least, greatest
    FROM {sample_days}
    WHERE ($1::date IS NULL OR day >= $1) AND ($2::date IS NULL OR day < $2) AND $3 IN ('', metric)`},
	}}
)
