-- What nodes tell about themselves beyond elections.
ALTER TABLE {nodes}
    ALTER COLUMN status SET DEFAULT 'joining',
    ADD COLUMN drained boolean NOT NULL DEFAULT false,
    ADD COLUMN in_flight integer NOT NULL DEFAULT 0,
    ADD COLUMN spreads jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN watching boolean NOT NULL DEFAULT true;

COMMENT ON COLUMN {nodes}.watching IS 'Whether the node''s watch connection works; if not, the next node of the ring watches in its place.';

-- Requests to a node, of no role, are to drain and to come back.
ALTER TABLE {requests} ADD COLUMN force boolean NOT NULL DEFAULT false;

-- Sets of roles that nodes share among themselves, as their nodes define them.
CREATE TABLE {spreads} (
    name text PRIMARY KEY,
    roles jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by uuid NOT NULL
);

COMMENT ON TABLE {spreads} IS 'Sets of roles that nodes share among themselves.';

-- One row: how much there is to do, for autoscalers. Nodes of the last moment
-- only: one that died, or is silent for longer than its lease, does nothing.
CREATE VIEW {autoscaling} AS
SELECT
    count(*) FILTER (WHERE status = 'active') AS active_nodes,
    count(*) FILTER (WHERE status = 'joining') AS joining_nodes,
    count(*) FILTER (WHERE status = 'draining') AS draining_nodes,
    coalesce(avg((cpu_usage + memory_usage) / 200) FILTER (WHERE status = 'active'), 0) AS mean_load,
    coalesce(max((cpu_usage + memory_usage) / 200) FILTER (WHERE status = 'active'), 0) AS highest_load,
    coalesce(sum((cpu_usage + memory_usage) / 200) FILTER (WHERE status = 'active'), 0) AS total_load,
    coalesce(avg(cpu_usage) FILTER (WHERE status = 'active'), 0) AS mean_cpu_usage,
    coalesce(sum(current_connections), 0) AS connections,
    coalesce(sum(current_jobs), 0) AS jobs,
    coalesce(sum(in_flight), 0) AS in_flight
FROM {nodes}
WHERE status <> 'dead' AND last_heartbeat + lease_ms * interval '1 millisecond' > clock_timestamp();

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
BEGIN
    LOOP
        SELECT last_value INTO membership FROM {membership};
        IF membership <> seen THEN
            event := 'moved';
            RETURN;
        END IF;

        nearest := ghost;
        pause_ms := CASE WHEN ghost > 0 THEN short_ms ELSE long_ms END;
        died := ghost;
        IF ghost > 0 AND pg_try_advisory_xact_lock_shared(space, ghost) THEN
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
        IF nearest = 0 THEN
            event := 'alone';
            RETURN;
        END IF;

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
