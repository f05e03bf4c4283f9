-- Daily totals, in UTC, of rows that retention has rolled up.
CREATE TABLE {term_days} (
    day date NOT NULL,
    role text NOT NULL,
    terms bigint NOT NULL,
    unclean bigint NOT NULL,
    led_ms double precision NOT NULL,
    vacant_ms double precision NOT NULL,
    longest_vacant_ms double precision NOT NULL,
    PRIMARY KEY (day, role)
);

COMMENT ON COLUMN {term_days}.day IS 'The day on which the terms ended.';
COMMENT ON COLUMN {term_days}.unclean IS 'Terms that crashed, expired, or ended with the server.';

CREATE TABLE {node_days} (
    day date PRIMARY KEY,
    came bigint NOT NULL,
    went bigint NOT NULL,
    died bigint NOT NULL
);

CREATE TABLE {run_days} (
    day date NOT NULL,
    schedule text NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    missed bigint NOT NULL,
    ran_ms double precision NOT NULL,
    longest_ms double precision NOT NULL,
    PRIMARY KEY (day, schedule)
);

COMMENT ON COLUMN {run_days}.failed IS 'Also those that timed out, panicked, or were abandoned.';
COMMENT ON COLUMN {run_days}.missed IS 'Ticks that were missed or skipped.';

-- One row for each kind of rows that retention removes.
CREATE TABLE {rollup_states} (
    kind text PRIMARY KEY,
    keep_ms bigint NOT NULL,
    interval_ms bigint NOT NULL,
    swept_at timestamptz,
    errors bigint NOT NULL DEFAULT 0,
    failing_since timestamptz,
    last_error text NOT NULL DEFAULT ''
);

COMMENT ON COLUMN {rollup_states}.interval_ms IS 'The time between two searches for old rows.';
COMMENT ON COLUMN {rollup_states}.swept_at IS 'When a search last ended with no old rows left.';
COMMENT ON COLUMN {rollup_states}.errors IS 'How many searches in a row have failed, since failing_since.';
