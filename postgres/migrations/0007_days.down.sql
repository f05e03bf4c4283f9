DROP TABLE {sample_days};
DROP INDEX {schema}."{prefix}samples_lasting";
DROP INDEX {schema}."{prefix}samples_keep_until";
CREATE INDEX "{prefix}samples_at" ON {samples} (at);
ALTER TABLE {samples} DROP COLUMN first;
ALTER TABLE {samples} DROP COLUMN lasting;
ALTER TABLE {samples} DROP COLUMN keep_until;

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
        INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
        VALUES (clock_timestamp(), NEW.id, NEW.name, NEW.incarnation, NEW.status, CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END);
    END IF;
    RETURN NULL;
END
$tenure_function$;

ALTER TABLE {node_history} DROP COLUMN changed_by;
ALTER TABLE {nodes} DROP COLUMN status_by;
ALTER TABLE {terms} DROP COLUMN retired_by;
ALTER TABLE {terms} DROP COLUMN retired_at;
