DROP FUNCTION {take}(text[], bigint[], integer[], integer[], bigint[], integer[], uuid, text[], integer, integer, text, text, boolean, boolean, boolean, integer[], timestamptz[], integer);
DROP FUNCTION {watch}(integer, integer, integer, bigint, integer, integer);
DROP VIEW {autoscaling};
DROP VIEW {leaders};
DROP TABLE {spreads};
DROP TABLE {requests};
DROP TABLE {history};
DROP FUNCTION {last_sign}(timestamptz, timestamptz);
DROP FUNCTION {term_end}(timestamptz, integer, timestamptz, timestamptz);
DROP TABLE {terms};
DROP FUNCTION {keep_terms}();
DROP FUNCTION {keep_leader}();
DROP TABLE {nodes};
DROP FUNCTION {record_node}();
DROP TABLE {node_history};
DROP FUNCTION {ended}(integer, integer[]);
DROP SEQUENCE {releases};
DROP SEQUENCE {membership};
DROP SEQUENCE {incarnations};
DROP TABLE {server};

-- Leases keep their records. The id is removed in any case: the lock keys of a
-- later installation must differ from those of this one.
DELETE FROM {installation} WHERE mode = 'sessions';
UPDATE {installation} SET id = gen_random_uuid();

DO $tenure_function$
BEGIN
    IF NOT EXISTS (SELECT FROM {installation}) THEN
        DROP TABLE {installation};
    END IF;
END
$tenure_function$;
