-- What is watched, as the configuration that was read last has it.
CREATE TABLE {alert_rules} (
    name text PRIMARY KEY,
    position integer NOT NULL,
    condition text NOT NULL,
    for_ms bigint NOT NULL,
    severity text NOT NULL,
    labels jsonb NOT NULL,
    annotations jsonb NOT NULL,
    notify text[] NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL,
    last_error text NOT NULL DEFAULT ''
);

COMMENT ON COLUMN {alert_rules}.last_error IS 'Why the condition could not be evaluated; empty if it could.';

-- The alerts that are pending or firing: one row for each series that a
-- condition has.
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
    PRIMARY KEY (rule, fingerprint)
);

COMMENT ON COLUMN {alert_states}.fingerprint IS 'A digest of the labels.';
COMMENT ON COLUMN {alert_states}.value IS 'The value when the alert became what it is.';
COMMENT ON COLUMN {alert_states}.notified IS 'The receivers of its end: those that were notified of its begin.';

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
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_error text NOT NULL DEFAULT '',
    term bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at timestamptz
);

COMMENT ON COLUMN {alert_notifications}.address IS 'The notifier, and what follows a colon: slack:#ops.';
COMMENT ON COLUMN {alert_notifications}.ended_at IS 'Null where the alert began to fire.';
COMMENT ON COLUMN {alert_notifications}.status IS 'failed: given up, after many attempts.';

-- No notification is sent twice.
CREATE UNIQUE INDEX "{prefix}alert_notifications_once"
    ON {alert_notifications} (rule, fingerprint, address, started_at, (ended_at IS NULL));

CREATE INDEX "{prefix}alert_notifications_due" ON {alert_notifications} (notifier, number) WHERE status = 'pending';
CREATE INDEX "{prefix}alert_notifications_settled" ON {alert_notifications} (settled_at);
