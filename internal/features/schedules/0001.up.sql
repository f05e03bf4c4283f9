-- Schedules. The ticks up to handled_until are handled.
CREATE TABLE {schedules} (
    name text PRIMARY KEY,
    role text NOT NULL,
    expression text NOT NULL,
    timezone text NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}',
    override jsonb,
    paused boolean NOT NULL DEFAULT false,
    handled_until timestamptz NOT NULL DEFAULT clock_timestamp(),
    before_gap timestamptz,
    gap_expires timestamptz,
    term bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    panics bigint NOT NULL DEFAULT 0,
    errors bigint NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '',
    failing_since timestamptz,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

COMMENT ON COLUMN {schedules}.override IS 'What operators have set of it, in place of what its program declares; with a job, they have added it.';
COMMENT ON COLUMN {schedules}.before_gap IS 'Up to when ticks were handled before some were missed: the clock may have been ahead. If the schedule began at a false time, -infinity.';
COMMENT ON COLUMN {schedules}.gap_expires IS 'If ticks are handled up to then, the clock was not ahead.';
COMMENT ON COLUMN {schedules}.errors IS 'How often in a row its leader could not work.';
COMMENT ON COLUMN {schedules}.term IS 'The last term of the role whose leader knew the schedule.';

-- One row for each tick, and for each requested run.
CREATE TABLE {runs} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule text NOT NULL,
    scheduled_for timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN (
        'waiting', 'running', 'succeeded', 'failed', 'timed_out', 'panicked', 'abandoned', 'missed', 'skipped')),
    ticks bigint NOT NULL DEFAULT 1,
    manual boolean NOT NULL DEFAULT false,
    requested_by text NOT NULL DEFAULT '',
    attempt integer NOT NULL DEFAULT 1,
    term bigint NOT NULL DEFAULT 0,
    node_id uuid,
    node_name text NOT NULL DEFAULT '',
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    retry_at timestamptz,
    retry_delay interval,
    error text NOT NULL DEFAULT '',
    output text NOT NULL DEFAULT '',
    UNIQUE (schedule, scheduled_for)
);

COMMENT ON COLUMN {runs}.retry_at IS 'When a run whose last attempt failed may start again.';
COMMENT ON COLUMN {runs}.retry_delay IS 'The longest time until retry_at.';
COMMENT ON COLUMN {runs}.output IS 'The end of what its job wrote in the last recorded attempt.';
COMMENT ON COLUMN {runs}.ticks IS 'How many ticks the row represents: more than 1 only for missed ticks.';

CREATE INDEX "{prefix}runs_open" ON {runs} (schedule, scheduled_for) WHERE state IN ('waiting', 'running');

-- Retention finds the runs by it that ended long ago. A run gets an end once.
CREATE INDEX "{prefix}runs_ended" ON {runs} (ended_at) WHERE ended_at IS NOT NULL;

-- The last runs of a schedule are found by it, however many ticks did not run.
CREATE INDEX "{prefix}runs_ran" ON {runs} (schedule, scheduled_for, state) WHERE state NOT IN ('waiting', 'missed', 'skipped');
CREATE INDEX "{prefix}runs_missed" ON {runs} (schedule, ticks) WHERE state = 'missed';
