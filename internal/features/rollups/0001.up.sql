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
