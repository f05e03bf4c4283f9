package alerts

// The statements of the leader.
const (
	// There is always a row, for the time.
	readRules = `
SELECT present.now, r.name, r.condition, r.for_ms, r.severity, r.labels, r.annotations, r.notify, r.last_error
FROM (SELECT clock_timestamp() AS now) present
LEFT JOIN {alert_rules} r ON true
ORDER BY r.position, r.name COLLATE "C"`

	readRoles = `SELECT role FROM {terms} WHERE retired_at IS NULL`

	// A node whose lease ran out is as good as dead.
	readNodes = `
SELECT
    n.id,
    n.name,
    n.status <> 'dead' AND n.last_heartbeat + n.lease_ms * interval '1 millisecond' > clock_timestamp(),
    ARRAY(
        SELECT l.role FROM {leaders} l WHERE l.node_id = n.id AND l.lease_until > clock_timestamp() ORDER BY l.role LIMIT 1000
    ),
    n.hostname,
    n.started_at,
    n.last_heartbeat
FROM {nodes} n`

	readStates = `
SELECT rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at, notified
FROM {alert_states}`

	// Waits for a transaction that has changed alerts and whose commit was not
	// answered.
	settleStates = `LOCK TABLE {alert_states} IN SHARE MODE`

	// JSON has no infinite numbers, so a value comes as a text.
	writeStates = `
INSERT INTO {alert_states} (rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at, notified)
SELECT rule, fingerprint, state, severity, labels, annotations, value::double precision, active_at, fired_at, notified
FROM jsonb_to_recordset($1::jsonb) AS a (
    rule text, fingerprint text, state text, severity text, labels jsonb, annotations jsonb, value text,
    active_at timestamptz, fired_at timestamptz, notified text[]
)
ON CONFLICT (rule, fingerprint) DO UPDATE SET
    state = excluded.state,
    severity = excluded.severity,
    labels = excluded.labels,
    annotations = excluded.annotations,
    value = excluded.value,
    active_at = excluded.active_at,
    fired_at = excluded.fired_at,
    notified = excluded.notified`

	removeStates = `
DELETE FROM {alert_states} s
USING unnest($1::text[], $2::text[]) AS gone (rule, fingerprint)
WHERE s.rule = gone.rule AND s.fingerprint = gone.fingerprint`

	writeNotifications = `
INSERT INTO {alert_notifications} (
    rule, fingerprint, notifier, address, severity, labels, annotations, value, started_at, ended_at, term
)
SELECT
    rule, fingerprint, notifier, address, severity, labels, annotations, value::double precision, started_at, ended_at, $2
FROM jsonb_to_recordset($1::jsonb) AS n (
    rule text, fingerprint text, notifier text, address text, severity text, labels jsonb, annotations jsonb, value text,
    started_at timestamptz, ended_at timestamptz
)
ON CONFLICT DO NOTHING`

	writeRuleError = `UPDATE {alert_rules} SET last_error = $2 WHERE name = $1 AND last_error <> $2`
)

// The statements of delivery.
const (
	// For each alert and address only the first notification is due, so that an end
	// is never sent before its beginning. Severe alerts are sent first.
	readDue = `
SELECT id, rule, severity, labels, annotations, value, started_at, ended_at, address, attempts
FROM (
    SELECT DISTINCT ON (rule, fingerprint, address) *
    FROM {alert_notifications}
    WHERE notifier = $1 AND status = 'pending'
    ORDER BY rule, fingerprint, address, number
) first
WHERE next_attempt_at <= clock_timestamp()
ORDER BY array_position($3::text[], severity) DESC NULLS LAST, number
LIMIT $2`

	// As above: a later notification is due when the earlier one has been sent.
	readNextDue = `
SELECT (1000 * extract(epoch FROM min(next_attempt_at) - clock_timestamp()))::double precision
FROM (
    SELECT DISTINCT ON (rule, fingerprint, address) next_attempt_at
    FROM {alert_notifications}
    WHERE notifier = $1 AND status = 'pending'
    ORDER BY rule, fingerprint, address, number
) first`

	// A node that takes over during this attempt does not try before it is over.
	claimNotifications = `
UPDATE {alert_notifications}
SET attempts = attempts + 1, next_attempt_at = clock_timestamp() + $3::bigint * interval '1 millisecond', term = $2
WHERE id = ANY ($1::uuid[]) AND status = 'pending'
RETURNING id`

	settleSent = `
UPDATE {alert_notifications}
SET status = 'sent', settled_at = clock_timestamp(), last_error = ''
WHERE id = ANY ($1::uuid[]) AND status = 'pending'`

	// The delay doubles from 5 s to 10 min, a fifth more or less.
	settleUnsent = `
UPDATE {alert_notifications}
SET
    last_error = $2,
    next_attempt_at = clock_timestamp() + greatest(
        $3::bigint * interval '1 millisecond',
        make_interval(secs => least(600, 2.5 * 2 ^ least(attempts, 10)) * (0.8 + 0.4 * random()))
    ),
    status = CASE WHEN created_at < clock_timestamp() - $4::bigint * interval '1 millisecond' THEN 'failed' ELSE 'pending' END,
    settled_at = CASE WHEN created_at < clock_timestamp() - $4::bigint * interval '1 millisecond' THEN clock_timestamp() END
WHERE id = ANY ($1::uuid[]) AND status = 'pending'`

	makeDue = `
UPDATE {alert_notifications}
SET next_attempt_at = clock_timestamp()
WHERE status = 'pending' AND next_attempt_at > clock_timestamp()`

	noteUnknown = `
UPDATE {alert_notifications}
SET
    last_error = $2,
    status = CASE WHEN created_at < clock_timestamp() - $3::bigint * interval '1 millisecond' THEN 'failed' ELSE 'pending' END,
    settled_at = CASE WHEN created_at < clock_timestamp() - $3::bigint * interval '1 millisecond' THEN clock_timestamp() END
WHERE status = 'pending'
    AND NOT notifier = ANY ($1::text[])
    AND (last_error <> $2 OR created_at < clock_timestamp() - $3::bigint * interval '1 millisecond')`

	// If an alert begins and ends faster than notifications can be sent, only those
	// already sent and the newest matter. Both rows of a pair are locked, so that
	// no beginning is sent whose end is dropped.
	dropUnheard = `
WITH unheard AS (
    SELECT began.id AS began, ended.id AS ended
    FROM {alert_notifications} began
    JOIN {alert_notifications} ended USING (rule, fingerprint, address, started_at)
    WHERE began.ended_at IS NULL AND began.status = 'pending' AND began.attempts = 0
        AND ended.ended_at IS NOT NULL AND ended.status = 'pending' AND ended.attempts = 0
        AND EXISTS (
            SELECT
            FROM {alert_notifications} later
            WHERE later.rule = began.rule AND later.fingerprint = began.fingerprint AND later.address = began.address
                AND later.status = 'pending' AND later.started_at > began.started_at
        )
    FOR UPDATE OF began, ended SKIP LOCKED
)
DELETE FROM {alert_notifications}
WHERE id IN (SELECT began FROM unheard UNION ALL SELECT ended FROM unheard)`

	pruneNotifications = `
DELETE FROM {alert_notifications}
WHERE id IN (
    SELECT id
    FROM {alert_notifications}
    WHERE settled_at < clock_timestamp() - $1::bigint * interval '1 millisecond'
    ORDER BY settled_at
    LIMIT $2
)`
)

// The statements of those who configure and look.
const (
	// Two processes that start at the same time must not mix their rules.
	lockRules = `LOCK TABLE {alert_rules} IN SHARE ROW EXCLUSIVE MODE`

	writeRules = `
INSERT INTO {alert_rules} (name, position, condition, for_ms, severity, labels, annotations, notify, changed_by)
SELECT name, position, condition, for_ms, severity, labels, annotations, notify, $2
FROM jsonb_to_recordset($1::jsonb) AS r (
    name text, position integer, condition text, for_ms bigint, severity text, labels jsonb, annotations jsonb, notify text[]
)
ON CONFLICT (name) DO UPDATE SET
    position = excluded.position,
    condition = excluded.condition,
    for_ms = excluded.for_ms,
    severity = excluded.severity,
    labels = excluded.labels,
    annotations = excluded.annotations,
    notify = excluded.notify,
    changed_at = clock_timestamp(),
    changed_by = excluded.changed_by,
    last_error = ''
WHERE ({alert_rules}.position, {alert_rules}.condition, {alert_rules}.for_ms, {alert_rules}.severity,
        {alert_rules}.labels, {alert_rules}.annotations, {alert_rules}.notify)
    IS DISTINCT FROM (excluded.position, excluded.condition, excluded.for_ms, excluded.severity,
        excluded.labels, excluded.annotations, excluded.notify)`

	removeRules = `DELETE FROM {alert_rules} WHERE NOT name = ANY ($1::text[])`

	listRules = `
SELECT name, condition, for_ms, severity, labels, annotations, notify, changed_at, changed_by, last_error
FROM {alert_rules}
ORDER BY position, name COLLATE "C"`

	countNotifications = `
SELECT
    rule,
    count(*) FILTER (WHERE status = 'pending'),
    count(*) FILTER (WHERE status = 'failed'),
    coalesce((array_agg(last_error ORDER BY number DESC) FILTER (WHERE last_error <> ''))[1], '')
FROM {alert_notifications}
WHERE status <> 'sent'
GROUP BY rule`
)
