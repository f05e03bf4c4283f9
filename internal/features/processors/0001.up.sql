-- Processors. Each one reads a log or a table under a role.
CREATE TABLE {processors} (
    name text PRIMARY KEY,
    kind text NOT NULL,
    role text NOT NULL,
    log text NOT NULL DEFAULT '',
    log_table text[] NOT NULL DEFAULT '{}',
    log_columns text[] NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'failed')),
    cursor_transaction xid8 NOT NULL DEFAULT '0',
    cursor_position bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0,
    system_identifier bigint NOT NULL DEFAULT 0,
    can_rebuild boolean NOT NULL DEFAULT false,
    rebuild boolean NOT NULL DEFAULT false,
    term bigint NOT NULL DEFAULT 0,
    node_id uuid,
    node_name text NOT NULL DEFAULT '',
    busy boolean NOT NULL DEFAULT false,
    processed bigint NOT NULL DEFAULT 0,
    errors integer NOT NULL DEFAULT 0,
    blamed integer NOT NULL DEFAULT 0,
    panics bigint NOT NULL DEFAULT 0,
    failing_transaction xid8,
    failing_position bigint,
    last_error text NOT NULL DEFAULT '',
    last_error_at timestamptz,
    next_attempt_at timestamptz,
    refused_role text NOT NULL DEFAULT '',
    refused_node text NOT NULL DEFAULT '',
    refused_at timestamptz,
    stuck_error text NOT NULL DEFAULT '',
    stuck_since timestamptz,
    stuck_errors integer NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    lineage text NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

COMMENT ON COLUMN {processors}.generation IS 'Increases whenever an operator moves the cursor: a batch that began before does not count.';
COMMENT ON COLUMN {processors}.log_table IS 'Schema and name of the table behind the log, if it is known.';
COMMENT ON COLUMN {processors}.log_columns IS 'Its columns with the transaction id and the position.';
COMMENT ON COLUMN {processors}.blamed IS 'How many of the errors in a row count as attempts at an event; without meaning where there are none.';
COMMENT ON COLUMN {processors}.failing_transaction IS 'With the position, the one event that the errors are of, if that is known.';
COMMENT ON COLUMN {processors}.busy IS 'Whether the leader may have a batch in flight.';
COMMENT ON COLUMN {processors}.refused_role IS 'The other role that last tried to run the processor.';
COMMENT ON COLUMN {processors}.refused_node IS 'The node that leads that role.';
COMMENT ON COLUMN {processors}.stuck_error IS 'Why the processor cannot work, although no event is to blame; empty while it works.';
COMMENT ON COLUMN {processors}.stuck_since IS 'When that began.';
COMMENT ON COLUMN {processors}.stuck_errors IS 'How often it has failed since. These errors are no attempts at an event.';
COMMENT ON COLUMN {processors}.epoch IS 'Grows whenever transaction ids may be lower than before: with the lineage, and with a repair. Positions are compared by the epoch first.';
COMMENT ON COLUMN {processors}.lineage IS 'The server on which the processor ran last: its system, timeline and life.';

-- How far processors are behind. The leader writes these rows beside running batches, so they
-- are not columns of the rows that batches lock: above READ COMMITTED, batches would fail.
CREATE TABLE {processor_lags} (
    processor text PRIMARY KEY,
    behind bigint NOT NULL,
    behind_more boolean NOT NULL,
    held bigint NOT NULL,
    waiting_since timestamptz,
    measured_at timestamptz NOT NULL
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

COMMENT ON COLUMN {processor_lags}.behind IS 'How many events waited, counted up to a limit, when the leader measured last.';
COMMENT ON COLUMN {processor_lags}.behind_more IS 'Whether the limit was reached.';
COMMENT ON COLUMN {processor_lags}.held IS 'How many of them waited for the end of older transactions.';
COMMENT ON COLUMN {processor_lags}.waiting_since IS 'When the first of them occurred.';
COMMENT ON COLUMN {processor_lags}.measured_at IS 'When the leader measured that.';

-- Dead letters: events that could not be handled. An operator can replay them.
CREATE TABLE {dead_letters} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    processor text NOT NULL,
    transaction_id xid8 NOT NULL,
    position bigint NOT NULL,
    error text NOT NULL,
    attempts integer NOT NULL,
    term bigint NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    skipped_by text NOT NULL DEFAULT '',
    replay boolean NOT NULL DEFAULT false,
    replay_by text NOT NULL DEFAULT '',
    replay_requested_at timestamptz,
    replay_failed_at timestamptz,
    replayed_at timestamptz,
    dismissed_by text NOT NULL DEFAULT '',
    dismissed_at timestamptz,
    UNIQUE (processor, transaction_id, position)
);

CREATE INDEX "{prefix}dead_letters_replay" ON {dead_letters} (processor, transaction_id, position) WHERE replay;

-- Open dead letters are counted by it, and retention finds by the other one those that
-- were replayed or dismissed long ago.
CREATE INDEX "{prefix}dead_letters_open" ON {dead_letters} (processor, skipped_by) WHERE replayed_at IS NULL AND dismissed_at IS NULL;
CREATE INDEX "{prefix}dead_letters_settled" ON {dead_letters} (COALESCE(replayed_at, dismissed_at))
    WHERE COALESCE(replayed_at, dismissed_at) IS NOT NULL;

COMMENT ON COLUMN {dead_letters}.skipped_by IS 'Who skipped the event; empty if the processor gave it up.';
COMMENT ON COLUMN {dead_letters}.dismissed_by IS 'Who marked the event as handled outside of the processor; empty if no operator did.';
COMMENT ON COLUMN {dead_letters}.replay IS 'Whether the leader is to hand the event to the handler again.';
COMMENT ON COLUMN {dead_letters}.replay_by IS 'Who requested the last replay; empty if no operator did.';
COMMENT ON COLUMN {dead_letters}.replay_failed_at IS 'When the last replay failed; NULL if it did not, or waits.';
