package assign

// The columns of the user's table, from the catalog.
const readColumns = `
SELECT
    a.attname::text,
    format_type(a.atttypid, NULL),
    type.typtype::text,
    a.attnotnull,
    has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
    has_column_privilege(a.attrelid, a.attnum, 'UPDATE'),
    EXISTS (
        SELECT
        FROM pg_index i
        WHERE i.indrelid = a.attrelid
            AND i.indisunique
            AND i.indisvalid
            AND i.indpred IS NULL
            AND i.indnkeyatts = 1
            AND i.indkey[0] = a.attnum
    )
FROM pg_attribute a
JOIN pg_type type ON type.oid = a.atttypid
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped`

// The statements on the user's table. They are planned with their values each time: the
// planner can then use partial indexes.
const (
	// The number of unfinished rows of each node, and the capabilities of
	// waiting rows. The recursion finds the next capability in the index,
	// whatever the number of rows.
	overview = `
WITH RECURSIVE waiting AS (
    (
        SELECT t.{capability} AS capability
        FROM {table} t
        WHERE t.{state} = $1::{state:type}
        ORDER BY t.{capability}
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT t.{capability}
        FROM {table} t
        WHERE t.{state} = $1::{state:type} AND t.{capability} > w.capability
        ORDER BY t.{capability}
        LIMIT 1
    )
    FROM waiting w
    WHERE w.capability IS NOT NULL
)
(
    SELECT
        coalesce(t.{node}::text, ''),
        count(*) FILTER (WHERE t.{state} = $2::{state:type}),
        count(*) FILTER (WHERE t.{state} = $3::{state:type}),
        NULL::text
    FROM {table} t
    WHERE t.{state} IN ($2::{state:type}, $3::{state:type})
    GROUP BY t.{node}
)
UNION ALL
(
    SELECT '', 0, 0, w.capability::text
    FROM waiting w
    WHERE w.capability IS NOT NULL
    LIMIT $4
)`

	// Limits how long the locks of a transaction outlive a paused leader. The
	// statistics of a table with short-lived rows are often outdated, so the
	// indexes are used regardless of them.
	//
	// One transaction at a time assigns rows of a table: the next one counts its
	// assignments, also after an unacknowledged commit, or under a leader of another role.
	// A table can be named in several ways.
	prepareTransaction = `
SELECT
    set_config('idle_in_transaction_session_timeout', $1, true),
    set_config('lock_timeout', $1, true),
    set_config('statement_timeout', $1, true),
    set_config('enable_seqscan', 'off', true),
    pg_advisory_xact_lock(hashtextextended('tenure assign ' || to_regclass($2)::oid, 0))`

	// The number of unfinished rows of each node.
	countUnfinished = `
SELECT
    coalesce(t.{node}::text, ''),
    count(*) FILTER (WHERE t.{state} = $1::{state:type}),
    count(*) FILTER (WHERE t.{state} = $2::{state:type})
FROM {table} t
WHERE t.{state} IN ($1::{state:type}, $2::{state:type})
GROUP BY t.{node}`

	// Takes back all rows of dead, drained and missing nodes, and rows not begun by
	// leaving nodes. A locked row may be about to be finished.
	takeBack = `
WITH lost AS MATERIALIZED (
    SELECT t.{id}
    FROM {table} t
    WHERE t.{state} IN ($2::{state:type}, $3::{state:type})
        AND (coalesce(t.{node}::text, '') = '' OR t.{node} = ANY ($5::text[]::{node:type}[]))
        AND (t.{state} = $2::{state:type} OR t.{node} IS NULL OR t.{node} <> ALL ($6::text[]::{node:type}[]))
    LIMIT $8
    FOR UPDATE SKIP LOCKED
)
UPDATE {table} t
SET {state} = CASE WHEN t.{state} = $3::{state:type} AND t.{attempts} >= $7 THEN $4::{state:type} ELSE $1::{state:type} END,
    {node} = NULL,
    {attempts} = CASE WHEN t.{state} = $2::{state:type} THEN greatest(t.{attempts} - 1, 0) ELSE t.{attempts} END
FROM lost
WHERE t.{id} = lost.{id}`

	// The first pending rows with capacity for them, locked, in the order of assignment.
	// The number of each capability is counted without locks; locked rows are skipped.
	choosePending = `
WITH first AS MATERIALIZED (
    SELECT chosen.{capability} AS capability
    FROM unnest($2::text[], $3::bigint[]) AS served(capability, places)
    CROSS JOIN LATERAL (
        SELECT {chosen_columns}
        FROM {table} t
        WHERE t.{state} = $1::{state:type} AND t.{capability} = served.capability
        ORDER BY {order}
        LIMIT served.places
    ) AS chosen
    ORDER BY {chosen_order}
    LIMIT $4
), wanted AS MATERIALIZED (
    SELECT capability, count(*) AS places
    FROM first
    GROUP BY capability
)
SELECT chosen.{id}::text, chosen.{capability}::text, chosen.{attempts}::bigint
FROM wanted
CROSS JOIN LATERAL (
    SELECT {chosen_columns}
    FROM {table} t
    WHERE t.{state} = $1::{state:type} AND t.{capability} = wanted.capability
    ORDER BY {order}
    LIMIT wanted.places
    FOR UPDATE OF t SKIP LOCKED
) AS chosen
ORDER BY {chosen_order}`

	// A row without a node becomes dead. The number of an assignment is at least the
	// number of the term, larger than every earlier one: a failover can have lost earlier
	// assignments, while their workers continue.
	assignRows = `
UPDATE {table} t
SET {state} = CASE WHEN a.node IS NULL THEN $4::{state:type} ELSE $3::{state:type} END,
    {node} = a.node::{node:type},
    {attempts} = t.{attempts} + CASE WHEN a.node IS NULL THEN 0 ELSE 1 END,
    {assignment} = CASE WHEN a.node IS NULL THEN t.{assignment} ELSE greatest(t.{assignment} + 1, $5::bigint) END
FROM unnest($1::text[]::{id:type}[], $2::text[]) AS a(id, node)
WHERE t.{id} = a.id`

	countWaiting = `
SELECT
    served.capability,
    (SELECT count(*) FROM (SELECT FROM {table} t WHERE t.{state} = $1::{state:type} AND t.{capability} = served.capability LIMIT $3) counted)
FROM unnest($2::text[]) AS served(capability)`

	// The number of the assignment does not change: a worker with the old assignment
	// cannot finish the row.
	replayRows = `
WITH dead AS MATERIALIZED (
    SELECT t.{id}
    FROM {table} t
    WHERE t.{state} = $1::{state:type} AND ($3::text[] IS NULL OR t.{id} = ANY ($3::text[]::{id:type}[]))
    ORDER BY {order}
    LIMIT $4
    FOR UPDATE SKIP LOCKED
), replayed AS (
    UPDATE {table} t
    SET {state} = $2::{state:type}, {node} = NULL, {attempts} = 0
    FROM dead
    WHERE t.{id} = dead.{id}
    RETURNING t.{id}
)
SELECT count(*) FROM replayed`

	notifyChannels = `SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS channel`
)
