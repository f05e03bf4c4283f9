package metrics

const (
	// The oldest rows go, a few at a time: many nodes do this.
	writeSample = `
WITH old AS (
    DELETE FROM {samples}
    WHERE (transaction_id, node_id) IN (
        SELECT transaction_id, node_id
        FROM {samples}
        WHERE at < clock_timestamp() - $5::bigint * interval '1 millisecond'
        ORDER BY at
        LIMIT 100
        FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO {samples} (node_id, node_name, format, body) VALUES ($1, $2, $3, $4)`

	// What is visible now and was not when the last position was taken. Numbers
	// alone would not do: a lower one may be committed after a higher one. There
	// is always a row, for the position.
	readSamples = `
SELECT present.snapshot::text, s.node_id, s.node_name, s.at, s.format, s.body
FROM (SELECT pg_current_snapshot() AS snapshot) present
LEFT JOIN {samples} s
    ON s.transaction_id >= pg_snapshot_xmin($1::text::pg_snapshot)
    AND NOT pg_visible_in_snapshot(s.transaction_id, $1::text::pg_snapshot)
    AND s.at >= clock_timestamp() - $2::bigint * interval '1 millisecond'
ORDER BY s.at`
)
