-- How the installation elects, by sessions or by leases: whoever elects first
-- decides. Leases may have made the table.
CREATE TABLE IF NOT EXISTS {mode} (
    mode text NOT NULL CHECK (mode IN ('sessions', 'leases')),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);

COMMENT ON TABLE {mode} IS 'How the installation elects. Change it with tenure migrate mode, while no node lives.';

INSERT INTO {mode} (mode) VALUES ('sessions') ON CONFLICT DO NOTHING;

-- Which programs may use the schema although they do not know a step: all that
-- know the version given here. NULL: they must know the step.
ALTER TABLE {migrations} ADD COLUMN IF NOT EXISTS usable_from integer;

-- Waits until a node that this one watches has ended, the membership has moved,
-- or the time is over; see the manual page on failover for the reasons behind
-- its form. Each attempt is shorter than deadlock_timeout, so that the server's
-- log stays silent, and at transaction level, since a session-level lock can be
-- granted in the moment of the timeout and stay. The ghost is an earlier session
-- of the own node that the server still keeps, which has no row any more.
--
-- A node watches its predecessor in the ring. One whose watch connection is down
-- sees nobody die, so its successor watches the node before it too, and so on
-- back to the first that watches. It waits for the lock of its predecessor and
-- only looks at those of the others, so with short attempts.
--
-- It holds no lock on a table while it waits, or a migration would have to wait
-- for it: the tables are read in a block that always ends with an exception,
-- which releases their locks and keeps the variables.
--
-- While it waits it sends a message to its client five times per lease: a client
-- that hears nothing for most of a lease gives the connection up.
CREATE OR REPLACE FUNCTION {watch}(
    own integer,
    ghost integer,
    space integer,
    seen bigint,
    max_wait_ms integer,
    margin_ms integer,
    OUT event text,
    OUT died integer,
    OUT membership bigint
)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
DECLARE
    deadline constant timestamptz := clock_timestamp() + max_wait_ms * interval '1 millisecond';
    deadlock_ms constant double precision :=
        1000 * extract(epoch FROM current_setting('deadlock_timeout')::interval);
    -- Between attempts a watcher learns that its place in the ring has changed.
    long_ms constant integer := greatest(1, least(400, floor(deadlock_ms * 0.9)::integer));
    short_ms constant integer := least(100, long_ms);
    -- A node that comes is watched by the oldest one, which watches the youngest:
    -- it has to look often.
    oldest_ms constant integer := least(50, long_ms);
    watched record;
    nearest integer;
    pause_ms integer;
    pulse_ms integer;
    pulsed timestamptz := clock_timestamp();
BEGIN
    LOOP
        event := NULL;
        nearest := ghost;
        died := ghost;
        pause_ms := CASE WHEN ghost > 0 THEN short_ms ELSE long_ms END;
        BEGIN
            PERFORM set_config('lock_timeout', long_ms || 'ms', true);
            IF pulse_ms IS NULL THEN
                SELECT greatest(100, n.lease_ms / 5) INTO pulse_ms FROM {nodes} n WHERE n.incarnation = own;
            END IF;
            SELECT last_value INTO membership FROM {membership};
            IF membership <> seen THEN
                event := 'moved';
            ELSIF ghost > 0 AND pg_try_advisory_xact_lock_shared(space, ghost) THEN
                event := 'died';
            ELSE
                FOR watched IN
                    SELECT
                        n.incarnation,
                        n.watching,
                        1000 * extract(epoch FROM
                            n.last_heartbeat + (n.lease_ms + margin_ms) * interval '1 millisecond' - clock_timestamp()) AS left_ms
                    FROM {nodes} n
                    WHERE n.status <> 'dead' AND n.incarnation <> own
                    ORDER BY n.incarnation < own DESC, n.incarnation DESC
                LOOP
                    died := watched.incarnation;
                    IF pg_try_advisory_xact_lock_shared(space, died) THEN
                        event := 'died';
                        EXIT;
                    ELSIF watched.left_ms < 0 THEN
                        event := 'silent';
                        EXIT;
                    END IF;
                    IF nearest = ghost THEN
                        nearest := died;
                        IF died > own THEN
                            pause_ms := least(pause_ms, oldest_ms);
                        END IF;
                    END IF;
                    -- A silent node is noticed when its time is over, not an attempt later.
                    pause_ms := greatest(1, least(pause_ms, ceil(watched.left_ms)));
                    EXIT WHEN watched.watching;
                    pause_ms := least(pause_ms, short_ms);
                END LOOP;
                IF event IS NULL AND nearest = 0 THEN
                    event := 'alone';
                END IF;
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'TNREL', MESSAGE = 'releases the locks of the tables';
        EXCEPTION
            WHEN SQLSTATE 'TNREL' THEN
                IF event IS NOT NULL THEN
                    RETURN;
                END IF;
            WHEN lock_not_available THEN -- a migration has the table
                nearest := 0;
        END;

        IF nearest <> 0 THEN
            died := nearest;
            BEGIN
                PERFORM set_config('lock_timeout', least(pause_ms, coalesce(pulse_ms, pause_ms)) || 'ms', true);
                PERFORM pg_advisory_xact_lock_shared(space, died);
                event := 'died';
                RETURN;
            EXCEPTION WHEN lock_not_available THEN
                NULL;
            END;
        END IF;

        IF clock_timestamp() >= pulsed + coalesce(pulse_ms, 0) * interval '1 millisecond' THEN
            RAISE INFO 'watching';
            pulsed := clock_timestamp();
        END IF;
        IF clock_timestamp() >= deadline THEN
            membership := coalesce(membership, seen);
            event := 'timeout';
            RETURN;
        END IF;
    END LOOP;
END
$tenure_function$;

-- A processor belongs to one role while that role's term is open.
ALTER TABLE {processors} ADD COLUMN refused_role text NOT NULL DEFAULT '';
ALTER TABLE {processors} ADD COLUMN refused_node text NOT NULL DEFAULT '';
ALTER TABLE {processors} ADD COLUMN refused_at timestamptz;

COMMENT ON COLUMN {processors}.refused_role IS 'The other role that last tried to run the processor.';
COMMENT ON COLUMN {processors}.refused_node IS 'The node that leads that role.';

-- Two roles with one key would be two names for one lock, each with terms of its
-- own.
DO $tenure_function$
DECLARE
    twin record;
BEGIN
    SELECT min(role) AS kept, max(role) AS other, lock_key INTO twin
    FROM {terms}
    GROUP BY lock_key
    HAVING count(*) > 1
    ORDER BY lock_key
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format(
                'the roles "%s" and "%s" have the same lock key, %s: end all nodes, keep the name of one of the two in all programs, and delete the row of the other: DELETE FROM %s WHERE role = %L',
                twin.kept, twin.other, twin.lock_key, {terms:regclass}, twin.other);
    END IF;
END
$tenure_function$;

ALTER TABLE {terms} ADD CONSTRAINT "{prefix}terms_lock_key_key" UNIQUE (lock_key);

-- Transaction ids can be lower on another server: positions are compared by the
-- epoch first.
ALTER TABLE {processors} ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE {processors} ADD COLUMN lineage text NOT NULL DEFAULT '';

COMMENT ON COLUMN {processors}.epoch IS 'Grows whenever transaction ids may be lower than before: with the lineage, and with a repair.';
COMMENT ON COLUMN {processors}.lineage IS 'The server on which the processor ran last: its system, timeline and life.';

-- The row of a role holds its lock key and the number of its last term. Sessions
-- know the key, so a row that is deleted or gets another key while they live
-- would be two locks for one role: it needs the lock of the installation, which
-- every session shares. A session that has just ended may still hold it.
CREATE FUNCTION {keep_terms}() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
BEGIN
    FOR attempt IN 1..20 LOOP
        IF pg_try_advisory_xact_lock({installation:key}) THEN
            RETURN CASE TG_OP WHEN 'DELETE' THEN old ELSE new END;
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
    RAISE EXCEPTION USING
        ERRCODE = 'object_in_use',
        MESSAGE = 'nodes live under this installation: the row of a role must stay, and keep its lock key',
        HINT = 'End all nodes first.';
END
$tenure_function$;

CREATE TRIGGER "{prefix}keep_terms"
BEFORE DELETE OR UPDATE OF lock_key ON {terms}
FOR EACH ROW EXECUTE FUNCTION {keep_terms}();

CREATE TRIGGER "{prefix}keep_terms_table"
BEFORE TRUNCATE ON {terms}
FOR EACH STATEMENT EXECUTE FUNCTION {keep_terms}();
