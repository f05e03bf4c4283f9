package alerts

// The statements for configuration and display.
const (
	// Two processes starting at the same time must not mix their rules.
	lockRules = `LOCK TABLE {alert_rules} IN SHARE ROW EXCLUSIVE MODE`

	writeRules = `
INSERT INTO {alert_rules} (name, position, condition, for_ms, severity, labels, annotations, description, runbook, notify, changed_by)
SELECT name, position, condition, for_ms, severity, labels, annotations, description, runbook, notify, $2
FROM jsonb_to_recordset($1::jsonb) AS r (
    name text, position integer, condition text, for_ms bigint, severity text, labels jsonb, annotations jsonb,
    description text, runbook text, notify text[]
)
ON CONFLICT (name) DO UPDATE SET
    position = excluded.position,
    condition = excluded.condition,
    for_ms = excluded.for_ms,
    severity = excluded.severity,
    labels = excluded.labels,
    annotations = excluded.annotations,
    description = excluded.description,
    runbook = excluded.runbook,
    notify = excluded.notify,
    changed_at = clock_timestamp(),
    changed_by = excluded.changed_by,
    last_error = ''
WHERE ({alert_rules}.position, {alert_rules}.condition, {alert_rules}.for_ms, {alert_rules}.severity,
        {alert_rules}.labels, {alert_rules}.annotations, {alert_rules}.description, {alert_rules}.runbook, {alert_rules}.notify)
    IS DISTINCT FROM (excluded.position, excluded.condition, excluded.for_ms, excluded.severity,
        excluded.labels, excluded.annotations, excluded.description, excluded.runbook, excluded.notify)`

	removeRules = `DELETE FROM {alert_rules} WHERE NOT name = ANY ($1::text[])`

	listHistory = `
SELECT id, rule, severity, labels, summary, fired_at, ended_at, silenced_by, acked_by, incident
FROM {alert_history}
WHERE ($1 = '' OR rule = $1)
    AND ($2::timestamptz IS NULL OR ended_at IS NULL OR ended_at >= $2)
    AND ($3::timestamptz IS NULL OR fired_at <= $3)
ORDER BY fired_at DESC, id DESC
LIMIT $4`
)

// The statements of operators.
const (
	listRuleNames = `SELECT name FROM {alert_rules} ORDER BY name COLLATE "C"`

	listSilences = `
SELECT id, rule, matchers, comment, created_by, created_at, until, ended_by, ended_at
FROM {alert_silences}
WHERE $1 OR (ended_at IS NULL AND clock_timestamp() BETWEEN created_at - (until - created_at) AND until)
ORDER BY id DESC
LIMIT 1000`

	addSilence = `
WITH silence AS (
    INSERT INTO {alert_silences} (rule, matchers, comment, created_by, until)
    VALUES ($1, $2, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond')
    RETURNING id, rule, matchers, comment, created_by, created_at, until
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT created_by, 'alert', CASE WHEN rule = '' THEN 'all alerts' ELSE rule END, 'silence',
        'silence ' || id || ' until ' || to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        || CASE WHEN matchers = '{}' THEN '' ELSE ' with ' || matchers::text END
        || CASE WHEN comment = '' THEN '' ELSE ': ' || comment END
    FROM silence
)
SELECT id, created_at, until
FROM silence`

	endSilence = `
WITH ended AS (
    UPDATE {alert_silences}
    SET ended_by = $2, ended_at = clock_timestamp()
    WHERE id = $1 AND ended_at IS NULL AND clock_timestamp() BETWEEN created_at - (until - created_at) AND until
    RETURNING id, rule, ended_by
)
INSERT INTO {changes} (changed_by, kind, name, action, detail)
SELECT ended_by, 'alert', CASE WHEN rule = '' THEN 'all alerts' ELSE rule END, 'unsilence', 'silence ' || id
FROM ended`

	acknowledge = `
WITH acked AS (
    UPDATE {alert_states}
    SET acked_by = $3, acked_until = clock_timestamp() + $4::bigint * interval '1 millisecond'
    WHERE rule = $1 AND state = 'firing' AND labels @> $2::jsonb
    RETURNING rule, fingerprint, acked_by, acked_until
), noted AS (
    UPDATE {alert_history} h
    SET acked_by = $3
    FROM acked
    WHERE h.rule = acked.rule AND h.fingerprint = acked.fingerprint AND h.ended_at IS NULL
), change AS (
    INSERT INTO {changes} (changed_by, kind, name, action, detail)
    SELECT acked_by, 'alert', rule, 'acknowledge',
        'alerts: ' || count(*) || ', until ' || to_char(max(acked_until) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM acked
    GROUP BY rule, acked_by
)
SELECT count(*) FROM acked`
)
