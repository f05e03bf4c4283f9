DROP VIEW {autoscaling};
DROP TABLE {spreads};
ALTER TABLE {requests} DROP COLUMN force;

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
    longest_ms constant integer := CASE WHEN ghost > 0 THEN 100 ELSE 900 END;
    attempt_ms constant integer := greatest(1, least(longest_ms, floor(deadlock_ms * 0.9)::integer));
    predecessor record;
    pause_ms integer;
BEGIN
    LOOP
        SELECT last_value INTO membership FROM {membership};
        IF membership <> seen THEN
            event := 'moved';
            RETURN;
        END IF;

        died := ghost;
        IF ghost > 0 AND pg_try_advisory_xact_lock_shared(space, ghost) THEN
            event := 'died';
            RETURN;
        END IF;

        SELECT
            n.incarnation,
            1000 * extract(epoch FROM
                n.last_heartbeat + (n.lease_ms + margin_ms) * interval '1 millisecond' - clock_timestamp()) AS left_ms
        INTO predecessor
        FROM {nodes} n
        WHERE n.status <> 'dead' AND n.incarnation <> own
        ORDER BY n.incarnation < own DESC, n.incarnation DESC
        LIMIT 1;
        IF FOUND THEN
            died := predecessor.incarnation;
        ELSIF ghost = 0 THEN
            event := 'alone';
            RETURN;
        END IF;

        IF pg_try_advisory_xact_lock_shared(space, died) THEN
            event := 'died';
            RETURN;
        ELSIF predecessor.left_ms < 0 THEN
            event := 'silent';
            RETURN;
        END IF;

        -- A silent predecessor is noticed when its time is over, not an attempt later.
        pause_ms := least(attempt_ms, greatest(1, ceil(coalesce(predecessor.left_ms, attempt_ms))));
        BEGIN
            PERFORM set_config('lock_timeout', pause_ms || 'ms', true);
            PERFORM pg_advisory_xact_lock_shared(space, died);
            event := 'died';
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;

        IF clock_timestamp() >= deadline THEN
            event := 'timeout';
            RETURN;
        END IF;
    END LOOP;
END
$tenure_function$;

ALTER TABLE {nodes}
    DROP COLUMN watching,
    DROP COLUMN spreads,
    DROP COLUMN in_flight,
    DROP COLUMN drained,
    ALTER COLUMN status SET DEFAULT 'active';
