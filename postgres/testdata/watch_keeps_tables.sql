-- A function on which nodes wait that keeps a lock on the table of nodes for the
-- length of each call, up to 30 s.
CREATE OR REPLACE FUNCTION {watch}(
    own integer,
    stale_session integer,
    space integer,
    seen bigint,
    max_wait_ms integer,
    margin_ms integer,
    OUT event text,
    OUT died integer,
    OUT membership bigint,
    OUT waited boolean
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
    -- A node that joins is watched by the oldest one, which watches the youngest:
    -- it has to read the ring often.
    oldest_ms constant integer := least(50, long_ms);
    watched record;
    nearest integer;
    pause_ms integer;
BEGIN
    waited := false;
    LOOP
        SELECT last_value INTO membership FROM {membership};
        IF membership <> seen THEN
            event := 'moved';
            RETURN;
        END IF;

        nearest := stale_session;
        pause_ms := CASE WHEN stale_session > 0 THEN short_ms ELSE long_ms END;
        died := stale_session;
        IF stale_session > 0 AND pg_try_advisory_xact_lock_shared(space, stale_session) THEN
            event := 'died';
            RETURN;
        END IF;

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
                RETURN;
            ELSIF watched.left_ms < 0 THEN
                event := 'silent';
                RETURN;
            END IF;
            IF nearest = stale_session THEN
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
        IF nearest = 0 THEN
            event := 'alone';
            RETURN;
        END IF;

        waited := true;
        died := nearest;
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
