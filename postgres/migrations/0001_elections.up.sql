-- Who this installation is: lock keys are derived from it, so that two
-- installations in one database never meet.
CREATE TABLE {installation} (
    id uuid NOT NULL,
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);

INSERT INTO {installation} (id) VALUES (gen_random_uuid());

-- A crash of the server empties this table, and a promoted replica finds it
-- empty: either way all locks were lost. The row of a fresh installation is not
-- the successor of another, so nobody has to wait for anything.
CREATE UNLOGGED TABLE {server} (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_migration boolean NOT NULL,
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);

INSERT INTO {server} (id, by_migration) VALUES (gen_random_uuid(), true);

-- The numbers of sessions.
CREATE SEQUENCE {incarnations} AS integer;

-- Advanced after the commit of every join, leave and death of a node.
CREATE SEQUENCE {membership};

SELECT setval({membership:regclass}, 1);

-- The only row that a heartbeat writes: there is no index on what changes, and
-- room in each page, so that the updates stay within it.
CREATE TABLE {nodes} (
    id uuid PRIMARY KEY,
    incarnation integer NOT NULL,
    name text NOT NULL,
    hostname text NOT NULL,
    ip_address text NOT NULL DEFAULT '',
    http_port integer NOT NULL DEFAULT 0,
    grpc_port integer NOT NULL DEFAULT 0,
    roles text[] NOT NULL DEFAULT '{}',
    worker_capabilities text[] NOT NULL DEFAULT '{}',
    labels jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'active',
    version text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_heartbeat timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_ms integer NOT NULL,
    pid integer NOT NULL,
    backend_start timestamptz NOT NULL,
    current_connections integer NOT NULL DEFAULT 0,
    current_jobs integer NOT NULL DEFAULT 0,
    cpu_usage double precision NOT NULL DEFAULT 0,
    memory_usage double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

COMMENT ON TABLE {nodes} IS 'Processes that take part in elections.';
COMMENT ON COLUMN {nodes}.incarnation IS 'The session of the node; its advisory lock (two integers, the second is this number) is held as long as that session lives.';

-- Rows are never deleted: the numbers in them must only grow.
CREATE TABLE {terms} (
    role text PRIMARY KEY,
    term bigint NOT NULL DEFAULT 0,
    lock_key text NOT NULL,
    node_id uuid,
    node_name text,
    incarnation integer,
    lease_ms integer,
    acquired_at timestamptz,
    ended_at timestamptz,
    end_reason text,
    vacant_ms double precision,
    server_lineage text,
    server_epoch text,
    reserved_for uuid,
    reserved_until timestamptz,
    fence smallint NOT NULL DEFAULT 0,
    CONSTRAINT "{prefix}terms_role_term_key" UNIQUE (role, term)
) WITH (fillfactor = 50);

COMMENT ON TABLE {terms} IS 'The last term of each role. Rows must not be deleted: terms must only grow.';
COMMENT ON INDEX {schema}."{prefix}terms_role_term_key" IS 'Do not drop: it makes term a key column, so that a transaction that holds FOR KEY SHARE on the row keeps the next term from beginning. Without it fencing protects nothing.';
COMMENT ON COLUMN {terms}.fence IS 'Never written. UPDATE on this column alone is the privilege that lets an application lock the row to fence its transactions.';

CREATE TABLE {history} (
    role text NOT NULL,
    term bigint NOT NULL,
    node_id uuid NOT NULL,
    node_name text NOT NULL,
    incarnation integer NOT NULL,
    acquired_at timestamptz NOT NULL,
    ended_at timestamptz,
    end_reason text,
    vacant_ms double precision,
    PRIMARY KEY (role, term)
);

COMMENT ON TABLE {history} IS 'Terms that have ended, written when the next one begins.';

CREATE TABLE {requests} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    role text NOT NULL,
    term bigint NOT NULL,
    node_id uuid NOT NULL,
    target uuid,
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE VIEW {leaders} AS
SELECT
    t.role,
    t.node_id,
    t.acquired_at,
    n.last_heartbeat + n.lease_ms * interval '1 millisecond' AS lease_until,
    t.term,
    n.name AS node_name,
    n.hostname
FROM {terms} t
JOIN {nodes} n ON n.id = t.node_id AND n.incarnation = t.incarnation
WHERE t.ended_at IS NULL AND n.status <> 'dead';

-- Waits until the predecessor in the ring has ended, the membership has moved,
-- or the time is over; see the manual page on failover for the reasons behind
-- its form. Each attempt is shorter than deadlock_timeout, so that the server's
-- log stays silent, and at transaction level, since a session-level lock can be
-- granted in the moment of the timeout and stay. The ghost is an earlier session
-- of the own node that the server still keeps, which has no row any more.
CREATE FUNCTION {watch}(
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
