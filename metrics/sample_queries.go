package metrics

const (
	// Deletes the oldest rows, a few at a time, since many nodes do this.
	writeSample = `
WITH old AS (
    DELETE FROM {samples}
    WHERE (transaction_id, node_id) IN (
        SELECT transaction_id, node_id
        FROM {samples}
        WHERE keep_until < clock_timestamp()
        ORDER BY keep_until
        LIMIT 100
        FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO {samples} (node_id, node_name, format, body, keep_until, lasting, first)
VALUES ($1, $2, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond', $6, $7)`

	// The samples visible now and not at the last position. Numbers alone are not
	// sufficient: a lower one may commit after a higher one. There is always a row, for
	// the position. A sample of the future was written while the clock was ahead.
	readSamples = `
SELECT present.snapshot::text, s.node_id, s.node_name, s.at, s.format, s.body
FROM (SELECT pg_current_snapshot() AS snapshot) present
LEFT JOIN {samples} s
    ON s.transaction_id >= pg_snapshot_xmin($1::text::pg_snapshot)
    AND NOT pg_visible_in_snapshot(s.transaction_id, $1::text::pg_snapshot)
    AND s.at BETWEEN clock_timestamp() - $2::bigint * interval '1 millisecond' AND clock_timestamp() + interval '30 seconds'
ORDER BY s.at`

	// All samples since $1 milliseconds ago, and older ones, up to $2
	// milliseconds ago, as far as they take $3 bytes together.
	readAllSamples = `
SELECT present.snapshot::text, s.node_id, s.node_name, s.at, s.format, s.body
FROM (SELECT pg_current_snapshot() AS snapshot) present
LEFT JOIN (
    SELECT
        *,
        at >= clock_timestamp() - $1::bigint * interval '1 millisecond' AS recent,
        sum(octet_length(body)) OVER (ORDER BY at DESC) AS bytes
    FROM {samples}
    WHERE at BETWEEN clock_timestamp() - $2::bigint * interval '1 millisecond' AND clock_timestamp() + interval '30 seconds'
        AND keep_until > clock_timestamp()
) s ON s.recent OR s.bytes <= $3
ORDER BY s.at`
)

// The statements for rolling up.
const (
	// The oldest samples of the node with the oldest one, and the sample after them: it
	// shows by how much counters increased. Fewer if they are large.
	readOldestSamples = `
SELECT transaction_id::text, node_id, at, at < clock_timestamp() - $1::bigint * interval '1 millisecond', first, followed, format, body
FROM (
    SELECT
        *,
        row_number() OVER by_time AS number,
        lead(at) OVER by_time IS NOT NULL AS followed,
        sum(octet_length(body)) OVER by_time AS bytes
    FROM {samples}
    WHERE lasting AND node_id = (
        SELECT node_id
        FROM {samples}
        WHERE lasting AND at < clock_timestamp() - $1::bigint * interval '1 millisecond'
        ORDER BY at
        LIMIT 1
    )
    WINDOW by_time AS (ORDER BY at)
) s
WHERE number <= 2 OR number <= $2 AND bytes <= $3
ORDER BY at`

	deleteFolded = `
DELETE FROM {samples} s
USING unnest($1::text[]::xid8[]) AS folded (transaction_id)
WHERE s.transaction_id = folded.transaction_id AND s.node_id = $2`

	addToDays = `
INSERT INTO {sample_days} AS d (day, metric, digest, labels, kind, samples, total, least, greatest)
SELECT day, metric, digest, labels::jsonb, kind, samples, total, least, greatest
FROM unnest($1::date[], $2::text[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::float8[], $8::float8[], $9::float8[])
    AS s (day, metric, digest, labels, kind, samples, total, least, greatest)
ON CONFLICT (day, metric, digest) DO UPDATE
SET samples = d.samples + excluded.samples,
    total = d.total + excluded.total,
    least = least(d.least, excluded.least),
    greatest = greatest(d.greatest, excluded.greatest)`
)
