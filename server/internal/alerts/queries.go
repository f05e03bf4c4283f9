package alerts

// The statements of the leader.
const (
	// There is always a row, for the time.
	readRules = `
SELECT present.now, r.name, r.condition, r.for_ms, r.severity, r.labels, r.annotations, r.description, r.runbook, r.notify, r.last_error
FROM (SELECT clock_timestamp() AS now) present
LEFT JOIN {alert_rules} r ON true
ORDER BY r.position, r.name COLLATE "C"`

	// After completed work a role needs no leader until its next term is due.
	readRoles = `
SELECT role
FROM {terms}
WHERE retired_at IS NULL
    AND NOT (coalesce(end_reason, '') = 'completed' AND coalesce(clock_timestamp() BETWEEN ended_at AND next_by, true))`

	// A node whose lease ran out is as good as dead. The leaders are read once, not once for
	// each node.
	readNodes = `
SELECT
    n.id,
    n.name,
    n.status <> 'dead' AND n.last_heartbeat + n.lease_ms * interval '1 millisecond' > clock_timestamp(),
    coalesce(l.roles, '{}'),
    n.hostname,
    n.started_at,
    n.last_heartbeat
FROM {nodes} n
LEFT JOIN (
    SELECT node_id, (array_agg(role ORDER BY role))[:1000] AS roles
    FROM {leaders}
    WHERE lease_until > clock_timestamp()
    GROUP BY node_id
) l ON l.node_id = n.id`

	readStates = `
SELECT
    rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at, notified, vacant_since, group_key, incident,
    acked_by, acked_until
FROM {alert_states}`

	// Waits for a transaction with changes of alerts and an unanswered commit.
	settleStates = `LOCK TABLE {alert_states} IN SHARE MODE`

	// JSON has no infinite numbers, so a value comes as a text. Acknowledgments are
	// written by operators, and stay.
	writeStates = `
INSERT INTO {alert_states} (
    rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at, notified, vacant_since, group_key, incident
)
SELECT
    rule, fingerprint, state, severity, labels, annotations, value::double precision, active_at, fired_at, notified,
    vacant_since, group_key, incident
FROM jsonb_to_recordset($1::jsonb) AS a (
    rule text, fingerprint text, state text, severity text, labels jsonb, annotations jsonb, value text,
    active_at timestamptz, fired_at timestamptz, notified text[], vacant_since timestamptz, group_key text, incident text
)
ON CONFLICT (rule, fingerprint) DO UPDATE SET
    state = excluded.state,
    severity = excluded.severity,
    labels = excluded.labels,
    annotations = excluded.annotations,
    value = excluded.value,
    active_at = excluded.active_at,
    fired_at = excluded.fired_at,
    notified = excluded.notified,
    vacant_since = excluded.vacant_since,
    group_key = excluded.group_key,
    incident = excluded.incident`

	removeStates = `
DELETE FROM {alert_states} s
USING unnest($1::text[], $2::text[]) AS gone (rule, fingerprint)
WHERE s.rule = gone.rule AND s.fingerprint = gone.fingerprint`

	// A silenced notification becomes one to send when the silence ends.
	writeNotifications = `
INSERT INTO {alert_notifications} (
    rule, fingerprint, notifier, address, severity, labels, annotations, value, since, started_at, ended_at, group_key, incident,
    status, settled_at, term
)
SELECT
    rule, fingerprint, notifier, address, severity, labels, annotations, value::double precision, since, started_at, ended_at,
    group_key, incident, CASE WHEN silenced THEN 'silenced' ELSE 'pending' END, CASE WHEN silenced THEN clock_timestamp() END, $2
FROM jsonb_to_recordset($1::jsonb) AS n (
    rule text, fingerprint text, notifier text, address text, severity text, labels jsonb, annotations jsonb, value text,
    since timestamptz, started_at timestamptz, ended_at timestamptz, group_key text, incident text, silenced boolean
)
ON CONFLICT (rule, fingerprint, address, started_at, (ended_at IS NULL)) DO UPDATE SET
    status = 'pending',
    settled_at = NULL,
    created_at = clock_timestamp(),
    next_attempt_at = clock_timestamp(),
    term = excluded.term
WHERE {alert_notifications}.status = 'silenced' AND excluded.status = 'pending'`

	writeHistory = `
INSERT INTO {alert_history} (rule, fingerprint, severity, labels, summary, fired_at, silenced_by, incident)
SELECT rule, fingerprint, severity, labels, coalesce(annotations ->> 'summary', ''), fired_at, silenced_by, incident
FROM jsonb_to_recordset($1::jsonb) AS a (
    rule text, fingerprint text, severity text, labels jsonb, annotations jsonb, fired_at timestamptz, silenced_by text, incident text
)
WHERE fired_at IS NOT NULL
ON CONFLICT DO NOTHING`

	endHistory = `
UPDATE {alert_history} h
SET ended_at = greatest(h.fired_at, clock_timestamp())
FROM unnest($1::text[], $2::text[]) AS gone (rule, fingerprint)
WHERE h.rule = gone.rule AND h.fingerprint = gone.fingerprint AND h.ended_at IS NULL`

	// If an operator has prolonged the acknowledgment, its receivers are not notified
	// again: their earlier notification stays.
	endAcks = `
WITH expired AS (
    UPDATE {alert_states} s
    SET acked_by = '', acked_until = NULL
    FROM unnest($1::text[], $2::text[]) AS a (rule, fingerprint)
    WHERE s.rule = a.rule AND s.fingerprint = a.fingerprint AND s.acked_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + $3::bigint * interval '1 millisecond'
    RETURNING s.rule, s.fingerprint
)
DELETE FROM {alert_notifications} n
USING expired
WHERE n.rule = expired.rule AND n.fingerprint = expired.fingerprint AND n.ended_at IS NULL AND n.status <> 'pending'`

	readAcks = `SELECT rule, fingerprint, acked_by, acked_until FROM {alert_states} WHERE acked_until IS NOT NULL`

	writeRuleError = `UPDATE {alert_rules} SET last_error = $2 WHERE name = $1 AND last_error <> $2`
)

// The statements of delivery.
const (
	// For each alert and address only the first notification is due, so an end is never
	// sent before its beginning. Severe alerts are sent first.
	readDue = `
SELECT id, rule, severity, labels, annotations, value, since, started_at, ended_at, address, attempts, group_key, incident
FROM (
    SELECT DISTINCT ON (rule, fingerprint, address) *
    FROM {alert_notifications}
    WHERE notifier = $1 AND status = 'pending'
    ORDER BY rule, fingerprint, address, number
) first
WHERE next_attempt_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + $4::bigint * interval '1 millisecond'
ORDER BY array_position($3::text[], severity) DESC NULLS LAST, number
LIMIT $2`

	// As above: a later notification is due when the earlier one has been sent.
	readNextDue = `
SELECT (1000 * extract(epoch FROM min(next_attempt_at) - clock_timestamp()))::double precision
FROM (
    SELECT DISTINCT ON (rule, fingerprint, address)
        CASE WHEN next_attempt_at <= clock_timestamp() + $2::bigint * interval '1 millisecond' THEN next_attempt_at ELSE clock_timestamp() END
            AS next_attempt_at
    FROM {alert_notifications}
    WHERE notifier = $1 AND status = 'pending'
    ORDER BY rule, fingerprint, address, number
) first`

	// After a takeover during this attempt, the new leader does not try before it is
	// over.
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

	// If an alert begins and ends faster than notifications can be sent, only the sent
	// ones and the newest matter. Both rows of a pair are locked: no beginning may be
	// sent after its end is dropped.
	dropUnheard = `
WITH dropped AS (
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
WHERE id IN (SELECT began FROM dropped UNION ALL SELECT ended FROM dropped)`

	// An index serves a comparison only if the time is read once, in a query below.
	pruneNotifications = `
DELETE FROM {alert_notifications}
WHERE id IN (
    SELECT id
    FROM {alert_notifications}
    WHERE settled_at < (SELECT clock_timestamp() - $1::bigint * interval '1 millisecond')
    ORDER BY settled_at
    LIMIT $2
)`

	pruneHistory = `
DELETE FROM {alert_history}
WHERE id IN (SELECT id FROM {alert_history} WHERE ended_at < (SELECT clock_timestamp() - $1::bigint * interval '1 millisecond') ORDER BY ended_at LIMIT $2)`

	pruneSilences = `
DELETE FROM {alert_silences}
WHERE id IN (SELECT id FROM {alert_silences} WHERE until < (SELECT clock_timestamp() - $1::bigint * interval '1 millisecond') ORDER BY until LIMIT $2)`
)
