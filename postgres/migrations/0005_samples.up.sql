-- What the nodes measured lately, for whoever adds it up. Without a log: it costs
-- half as much, and is written also while synchronous standbys hang. After a
-- crash of the server, nodes fill it again.
CREATE UNLOGGED TABLE {samples} (
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    node_id uuid NOT NULL,
    node_name text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    format smallint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (transaction_id, node_id)
);

-- It is compressed already.
ALTER TABLE {samples} ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX "{prefix}samples_at" ON {samples} (at);

COMMENT ON COLUMN {samples}.transaction_id IS 'A reader knows by it what it has not seen yet.';
COMMENT ON COLUMN {samples}.format IS 'How body is written: 1 is compressed protocol buffers of Prometheus.';
