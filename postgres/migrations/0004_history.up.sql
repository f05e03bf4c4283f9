-- Who asked for the end of a term, if somebody did.
ALTER TABLE {terms} ADD COLUMN ended_by text NOT NULL DEFAULT '';
ALTER TABLE {history} ADD COLUMN ended_by text NOT NULL DEFAULT '';

CREATE INDEX "{prefix}history_ended_at" ON {history} (ended_at);

ALTER TABLE {nodes} ADD COLUMN died_at timestamptz;

COMMENT ON COLUMN {nodes}.died_at IS 'When the node was found dead; by then it had been for milliseconds, or for its lease if it fell silent.';

-- What became of the nodes. Triggers write it, so that it cannot disagree with
-- the registry.
CREATE TABLE {node_history} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    node_id uuid NOT NULL,
    node_name text NOT NULL,
    incarnation integer NOT NULL,
    status text NOT NULL,
    previous text NOT NULL
);

CREATE INDEX "{prefix}node_history_at" ON {node_history} (at);

COMMENT ON TABLE {node_history} IS 'Every change of a node''s status or session; the status left means that it went, and previous is empty where it came.';

-- Under its owner's rights: whoever may write a node's row need not be able to
-- write its history.
CREATE FUNCTION {record_node}() RETURNS trigger
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
        INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
        VALUES (clock_timestamp(), NEW.id, NEW.name, NEW.incarnation, NEW.status, CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END);
    END IF;
    RETURN NULL;
END
$tenure_function$;

CREATE TRIGGER "{prefix}record_coming_and_going" AFTER INSERT OR DELETE ON {nodes}
FOR EACH ROW EXECUTE FUNCTION {record_node}();

-- Heartbeats do not fire it.
CREATE TRIGGER "{prefix}record_status" AFTER UPDATE OF status, incarnation ON {nodes}
FOR EACH ROW WHEN ((OLD.status, OLD.incarnation) IS DISTINCT FROM (NEW.status, NEW.incarnation))
EXECUTE FUNCTION {record_node}();

-- What is left of rows that were kept for long enough: sums of days, in UTC.
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
