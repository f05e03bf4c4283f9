-- A role that nobody is meant to lead any more. Its next term ends that.
ALTER TABLE {terms} ADD COLUMN retired_at timestamptz;
ALTER TABLE {terms} ADD COLUMN retired_by text NOT NULL DEFAULT '';

-- Who asked for a node's status, if somebody did.
ALTER TABLE {nodes} ADD COLUMN status_by text NOT NULL DEFAULT '';
ALTER TABLE {node_history} ADD COLUMN changed_by text NOT NULL DEFAULT '';

COMMENT ON COLUMN {nodes}.status_by IS 'Who asked for the status; empty if the node gave it itself.';
COMMENT ON COLUMN {node_history}.changed_by IS 'Who asked for the change; empty if nobody did.';

-- Nobody asks for a death or for another session: with that the row still has
-- who asked for the status before.
CREATE OR REPLACE FUNCTION {record_node}() RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.status <> 'dead' THEN
            INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
            VALUES (clock_timestamp(), OLD.id, OLD.name, OLD.incarnation, 'left', OLD.status);
        END IF;
    ELSE
        INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous, changed_by)
        VALUES (
            clock_timestamp(), NEW.id, NEW.name, NEW.incarnation, NEW.status,
            CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END,
            CASE WHEN TG_OP = 'UPDATE' AND NEW.incarnation = OLD.incarnation AND NEW.status <> 'dead' THEN NEW.status_by ELSE '' END
        );
    END IF;
    RETURN NULL;
END
$tenure_function$;

-- Few samples are kept for longer than the others, and summed up by days then.
ALTER TABLE {samples} ADD COLUMN keep_until timestamptz NOT NULL DEFAULT clock_timestamp() + interval '10 minutes';
ALTER TABLE {samples} ADD COLUMN lasting boolean NOT NULL DEFAULT false;
ALTER TABLE {samples} ADD COLUMN first boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN {samples}.lasting IS 'Whether the sample counts for the sums of its day.';
COMMENT ON COLUMN {samples}.first IS 'Whether it is the first of its process, whose counters began at zero.';

DROP INDEX {schema}."{prefix}samples_at";
CREATE INDEX "{prefix}samples_keep_until" ON {samples} (keep_until);
CREATE INDEX "{prefix}samples_lasting" ON {samples} (node_id, at) WHERE lasting;

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
