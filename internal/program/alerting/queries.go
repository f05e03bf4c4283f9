package alerting

const (
	listRules = `
SELECT name, condition, for_ms, severity, labels, annotations, description, runbook, notify, changed_at, changed_by, last_error
FROM {alert_rules}
ORDER BY position, name COLLATE "C"`

	countNotifications = `
SELECT
    rule,
    count(*) FILTER (WHERE status = 'pending'),
    count(*) FILTER (WHERE status = 'failed'),
    coalesce((array_agg(last_error ORDER BY number DESC) FILTER (WHERE last_error <> ''))[1], '')
FROM {alert_notifications}
WHERE status IN ('pending', 'failed')
GROUP BY rule`

	listAlerts = `
SELECT rule, state, labels, annotations, value, active_at, fired_at, vacant_since, incident, acked_by, acked_until
FROM {alert_states}`

	// A silence with more than twice its time left was made while the clock was ahead. An
	// index on until serves statement_timestamp(), which is not volatile.
	readActiveSilences = `
SELECT id, rule, matchers, created_by, until
FROM {alert_silences}
WHERE ended_at IS NULL AND statement_timestamp() BETWEEN created_at - (until - created_at) AND until
ORDER BY id`
)
