-- Recent measurements of the nodes, for programs that aggregate them. An unlogged table
-- costs half as much and accepts writes while synchronous standbys hang. After a crash of
-- the server, nodes fill it again.
CREATE UNLOGGED TABLE {samples} (
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    node_id uuid NOT NULL,
    node_name text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    format smallint NOT NULL,
    body bytea NOT NULL,
    keep_until timestamptz NOT NULL DEFAULT clock_timestamp() + interval '10 minutes',
    lasting boolean NOT NULL DEFAULT false,
    first boolean NOT NULL DEFAULT false,
    PRIMARY KEY (transaction_id, node_id)
);

-- The samples are compressed before they are written.
ALTER TABLE {samples} ALTER COLUMN body SET STORAGE EXTERNAL;

-- A few samples are kept for longer than the others, and are then rolled up.
CREATE INDEX "{prefix}samples_keep_until" ON {samples} (keep_until);
CREATE INDEX "{prefix}samples_lasting" ON {samples} (node_id, at) WHERE lasting;

COMMENT ON COLUMN {samples}.transaction_id IS 'A reader knows by it what it has not seen yet.';
COMMENT ON COLUMN {samples}.format IS 'How body is written: 1 is compressed protocol buffers of Prometheus.';
COMMENT ON COLUMN {samples}.lasting IS 'Whether the sample counts for the sums of its day.';
COMMENT ON COLUMN {samples}.first IS 'Whether it is the first of its process, whose counters began at zero.';

CREATE TABLE {sample_days} (
    day date NOT NULL,
    metric text NOT NULL,
    digest bytea NOT NULL,
    labels jsonb NOT NULL,
    kind text NOT NULL,
    samples bigint NOT NULL,
    total double precision NOT NULL,
    least double precision,
    greatest double precision,
    PRIMARY KEY (day, metric, digest)
);

COMMENT ON COLUMN {sample_days}.digest IS 'Of the labels, which may be longer than an index can hold.';
COMMENT ON COLUMN {sample_days}.kind IS 'gauge, or counter: then total is by how much it grew, of all nodes together.';
