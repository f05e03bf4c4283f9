-- The alert rules of the configuration that was read last.
CREATE TABLE {alert_rules} (
    name text PRIMARY KEY,
    position integer NOT NULL,
    condition text NOT NULL,
    for_ms bigint NOT NULL,
    severity text NOT NULL,
    labels jsonb NOT NULL,
    annotations jsonb NOT NULL,
    description text NOT NULL DEFAULT '',
    runbook text NOT NULL DEFAULT '',
    notify text[] NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL,
    last_error text NOT NULL DEFAULT ''
);

COMMENT ON COLUMN {alert_rules}.last_error IS 'Why the condition could not be evaluated; empty if it could.';

-- The pending and firing alerts: one row for each series of a condition.
CREATE TABLE {alert_states} (
    rule text NOT NULL,
    fingerprint text NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'firing')),
    severity text NOT NULL,
    labels jsonb NOT NULL,
    annotations jsonb NOT NULL,
    value double precision NOT NULL,
    active_at timestamptz NOT NULL,
    fired_at timestamptz,
    notified text[] NOT NULL DEFAULT '{}',
    vacant_since timestamptz,
    group_key text NOT NULL DEFAULT '',
    incident text NOT NULL DEFAULT '',
    acked_by text NOT NULL DEFAULT '',
    acked_until timestamptz,
    PRIMARY KEY (rule, fingerprint)
);

COMMENT ON COLUMN {alert_states}.fingerprint IS 'A digest of the labels.';
COMMENT ON COLUMN {alert_states}.value IS 'The value when the alert became what it is.';
COMMENT ON COLUMN {alert_states}.notified IS 'The receivers of its end: those that were notified of its begin.';
COMMENT ON COLUMN {alert_states}.vacant_since IS 'Since when the role of the alert had no leader when it fired; null if that is not known.';
COMMENT ON COLUMN {alert_states}.incident IS 'What had happened when the alert fired, in a sentence; group_key is the same for all alerts of one incident.';
COMMENT ON COLUMN {alert_states}.acked_by IS 'Who acknowledged the alert. When acked_until is over, its receivers are notified again.';

-- Notifications to send, with their receivers. A row is written in the transaction that changes
-- the state of the alert.
CREATE TABLE {alert_notifications} (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    number bigint GENERATED ALWAYS AS IDENTITY,
    rule text NOT NULL,
    fingerprint text NOT NULL,
    notifier text NOT NULL,
    address text NOT NULL,
    severity text NOT NULL,
    labels jsonb NOT NULL,
    annotations jsonb NOT NULL,
    value double precision NOT NULL,
    since timestamptz NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    group_key text NOT NULL DEFAULT '',
    incident text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'failed', 'silenced')),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_error text NOT NULL DEFAULT '',
    term bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at timestamptz
);

COMMENT ON COLUMN {alert_notifications}.address IS 'The notifier, and what follows a colon: slack:#ops.';
COMMENT ON COLUMN {alert_notifications}.ended_at IS 'Null where the alert began to fire.';
COMMENT ON COLUMN {alert_notifications}.since IS 'Since when the role was vacant or the condition held, before the alert fired.';
COMMENT ON COLUMN {alert_notifications}.status IS 'failed: given up, after many attempts. silenced: not to be sent, unless the alert still fires when the silence ends.';

-- The table has each notification once.
CREATE UNIQUE INDEX "{prefix}alert_notifications_once"
    ON {alert_notifications} (rule, fingerprint, address, started_at, (ended_at IS NULL));

CREATE INDEX "{prefix}alert_notifications_due" ON {alert_notifications} (notifier, number) WHERE status = 'pending';
CREATE INDEX "{prefix}alert_notifications_settled" ON {alert_notifications} (settled_at);

-- Silences: alerts that match fire without notifications.
CREATE TABLE {alert_silences} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule text NOT NULL DEFAULT '',
    matchers jsonb NOT NULL DEFAULT '{}',
    comment text NOT NULL DEFAULT '',
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    until timestamptz NOT NULL,
    ended_by text NOT NULL DEFAULT '',
    ended_at timestamptz
);

COMMENT ON COLUMN {alert_silences}.rule IS 'The name of the alert; empty for all.';
COMMENT ON COLUMN {alert_silences}.matchers IS 'The labels that an alert must have, with their values.';
COMMENT ON COLUMN {alert_silences}.ended_at IS 'When an operator ended the silence early; null if none did.';

CREATE INDEX "{prefix}alert_silences_until" ON {alert_silences} (until);

-- Alerts that fired. A row is written in the transaction in which the alert fires.
CREATE TABLE {alert_history} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule text NOT NULL,
    fingerprint text NOT NULL,
    severity text NOT NULL,
    labels jsonb NOT NULL,
    summary text NOT NULL,
    fired_at timestamptz NOT NULL,
    ended_at timestamptz,
    silenced_by text NOT NULL DEFAULT '',
    acked_by text NOT NULL DEFAULT '',
    incident text NOT NULL DEFAULT '',
    UNIQUE (rule, fingerprint, fired_at)
);

COMMENT ON COLUMN {alert_history}.ended_at IS 'Null while the alert fires.';
COMMENT ON COLUMN {alert_history}.silenced_by IS 'Who had silenced the alert when it fired.';

CREATE INDEX "{prefix}alert_history_fired" ON {alert_history} (fired_at);
CREATE INDEX "{prefix}alert_history_ended" ON {alert_history} (ended_at);
