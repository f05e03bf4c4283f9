-- The identity of this installation. Lock keys are derived from its id, so that two
-- installations in one database have different keys. The first election decides
-- whether the installation elects by sessions or by leases. Leases may have created
-- the table before.
CREATE TABLE IF NOT EXISTS {installation} (
    mode text NOT NULL CHECK (mode IN ('sessions', 'leases')),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);

COMMENT ON COLUMN {installation}.mode IS 'How the installation elects. Change it with tenure migrate mode, while no node is running.';

INSERT INTO {installation} (mode) VALUES ('sessions') ON CONFLICT DO NOTHING;

-- A crash of the server empties this table, and it is empty on a promoted replica:
-- in both cases all locks were lost. The row of a new installation replaces no
-- other, so no process has to wait.
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

-- Advanced after the lock of a role was released by a session that continues, and
-- after a session was found ended.
CREATE SEQUENCE {releases};

SELECT setval({releases:regclass}, 1);

-- A heartbeat writes only this row. No index covers the columns that it changes,
-- and each page has free space, so that the updates stay within the page.
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
    status text NOT NULL DEFAULT 'joining',
    status_by text NOT NULL DEFAULT '',
    drained boolean NOT NULL DEFAULT false,
    version text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_heartbeat timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_ms integer NOT NULL,
    died_at timestamptz,
    death_seen boolean NOT NULL DEFAULT true,
    fell_silent boolean NOT NULL DEFAULT false,
    pid integer NOT NULL,
    backend_start timestamptz NOT NULL,
    server_lineage text NOT NULL DEFAULT '',
    server_epoch text NOT NULL DEFAULT '',
    trust_until timestamptz,
    watching boolean NOT NULL DEFAULT true,
    spreads jsonb NOT NULL DEFAULT '{}',
    current_connections integer NOT NULL DEFAULT 0,
    current_jobs integer NOT NULL DEFAULT 0,
    in_flight integer NOT NULL DEFAULT 0,
    cpu_usage double precision NOT NULL DEFAULT 0,
    memory_usage double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A heartbeat changes neither column.
CREATE INDEX "{prefix}nodes_ring" ON {nodes} (incarnation) WHERE status <> 'dead';

COMMENT ON TABLE {nodes} IS 'Processes that take part in elections.';
COMMENT ON COLUMN {nodes}.incarnation IS 'The session of the node; its advisory lock (two integers, the second is this number) is held as long as that session lives.';
COMMENT ON COLUMN {nodes}.status_by IS 'Who asked for the status; empty if the node gave it itself.';
COMMENT ON COLUMN {nodes}.died_at IS 'When the first node noticed that the session of this node had ended; by then it had been silent for milliseconds, or for its lease.';
COMMENT ON COLUMN {nodes}.death_seen IS 'Whether a node was watching when the session ended; if not, died_at is when a node found it ended.';
COMMENT ON COLUMN {nodes}.fell_silent IS 'Whether the node closed its previous session because its trust window had ended.';
COMMENT ON COLUMN {nodes}.server_epoch IS 'With server_lineage, the life of the server in which the session was opened.';
COMMENT ON COLUMN {nodes}.trust_until IS 'Until when another process with the id of this node may still trust a session, at the latest; see the manual page on failover.';
COMMENT ON COLUMN {nodes}.watching IS 'Whether the node''s watch connection works; if not, the next node of the ring watches in its place.';

-- Rows are never deleted: the numbers in them must only grow. Two roles with one
-- key would be two names for one lock, each with separate terms.
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
    ended_by text NOT NULL DEFAULT '',
    end_cause text NOT NULL DEFAULT '',
    next_by timestamptz,
    vacant_ms double precision,
    silent_ms double precision,
    blocked_by text NOT NULL DEFAULT '',
    last_seen timestamptz,
    server_lineage text,
    server_epoch text,
    reserved_for uuid,
    reserved_until timestamptz,
    retired_at timestamptz,
    retired_by text NOT NULL DEFAULT '',
    fence smallint NOT NULL DEFAULT 0,
    CONSTRAINT "{prefix}terms_role_term_key" UNIQUE (role, term),
    CONSTRAINT "{prefix}terms_lock_key_key" UNIQUE (lock_key)
) WITH (fillfactor = 50);

-- The roles of a session are found without a look at all roles.
CREATE INDEX "{prefix}terms_incarnation" ON {terms} (incarnation);

COMMENT ON TABLE {terms} IS 'The last term of each role. Rows must not be deleted: terms must only grow.';
COMMENT ON INDEX {schema}."{prefix}terms_role_term_key" IS 'Do not drop: it makes term a key column, so that a transaction that holds FOR KEY SHARE on the row keeps the next term from beginning. Without it fencing protects nothing.';
COMMENT ON COLUMN {terms}.ended_by IS 'Who asked for the end of the term; empty if no one did.';
COMMENT ON COLUMN {terms}.end_cause IS 'Why the leader ended the term, for example the error of its work; empty if it gave no cause.';
COMMENT ON COLUMN {terms}.next_by IS 'When the next term is due after one that its leader ended: its node campaigns again then, or completed work should have started again by then.';
COMMENT ON COLUMN {terms}.vacant_ms IS 'How long the role had no leader before the term: from the end of the previous term to the begin of this one.';
COMMENT ON COLUMN {terms}.silent_ms IS 'How long the role was without a sign of life of a leader before the term: from the last heartbeat of the previous leader, or from the end of its term if it ended the term, to the begin of this one.';
COMMENT ON COLUMN {terms}.blocked_by IS 'The transactions that kept the term from beginning for longer than the fence timeout; empty if there were none.';
COMMENT ON COLUMN {terms}.last_seen IS 'The last heartbeat of the leader in a term that it did not end, known once another session has closed the term.';
COMMENT ON COLUMN {terms}.retired_at IS 'When the role was retired: no node is meant to lead it. Its next term ends that.';
COMMENT ON COLUMN {terms}.fence IS 'Never written. UPDATE on this column alone is the privilege that lets an application lock the row to fence its transactions.';

-- The row of a role holds its lock key and the number of its last term. Sessions
-- know the number, so a row that is deleted while they live would repeat numbers: it
-- needs the lock of the installation, which every session shares. A session that has
-- just ended may still hold it. Another lock key is another lock for one role: it needs
-- both locks, which a leader, and a node whose term is about to begin, would hold. A
-- session that still knows the old key begins no term, since its row has another.
CREATE FUNCTION {keep_terms}() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
DECLARE
    free boolean;
    key text;
BEGIN
    FOR attempt IN 1..20 LOOP
        free := true;
        IF TG_OP = 'UPDATE' THEN
            FOREACH key IN ARRAY ARRAY[old.lock_key, new.lock_key] LOOP
                free := free AND CASE
                    WHEN key LIKE '%:%' THEN pg_try_advisory_xact_lock(split_part(key, ':', 1)::integer, split_part(key, ':', 2)::integer)
                    ELSE pg_try_advisory_xact_lock(key::bigint)
                END;
            END LOOP;
        ELSE
            free := pg_try_advisory_xact_lock({installation:key});
        END IF;
        IF free THEN
            RETURN CASE TG_OP WHEN 'DELETE' THEN old ELSE new END;
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_in_use',
            MESSAGE = format('a session holds the lock of the role "%s", or the one that it would get: it must keep its lock key', old.role),
            HINT = 'Stop the candidates of the role first.';
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'object_in_use',
        MESSAGE = 'nodes live under this installation: the row of a role must stay',
        HINT = 'End all nodes first.';
END
$tenure_function$;

CREATE TRIGGER "{prefix}keep_terms"
BEFORE DELETE OR UPDATE OF lock_key ON {terms}
FOR EACH ROW EXECUTE FUNCTION {keep_terms}();

CREATE TRIGGER "{prefix}keep_terms_table"
BEFORE TRUNCATE ON {terms}
FOR EACH STATEMENT EXECUTE FUNCTION {keep_terms}();

-- Only its own session ends a term while that session lives. If another program did, the
-- leader would work on and nothing would show it: the role would be free for no other node.
-- A session that has just ended may still hold its lock.
CREATE FUNCTION {keep_leader}() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
DECLARE
    space integer := (SELECT ('x' || left(encode(sha256(uuid_send(id) || 'nodes'::bytea), 'hex'), 8))::bit(32)::integer FROM {installation});
BEGIN
    FOR attempt IN 1..20 LOOP
        IF old.incarnation IS NULL OR pg_try_advisory_xact_lock_shared(space, old.incarnation) THEN
            RETURN new;
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
    RAISE EXCEPTION USING
        ERRCODE = 'object_in_use',
        MESSAGE = format('%s leads the role "%s": another program cannot end its term', old.node_name, old.role),
        HINT = 'Use tenure step-down.';
END
$tenure_function$;

-- The sessions of nodes have the setting.
CREATE TRIGGER "{prefix}keep_leader"
BEFORE UPDATE OF ended_at, node_id, incarnation ON {terms}
FOR EACH ROW WHEN (
    old.term > 0 AND old.ended_at IS NULL
    AND (new.ended_at IS NOT NULL OR (new.node_id, new.incarnation) IS DISTINCT FROM (old.node_id, old.incarnation))
    AND coalesce(current_setting('tenure.incarnation', true), '') = ''
)
EXECUTE FUNCTION {keep_leader}();

-- Returns when a term ended that its node did not end: when the node was found
-- dead, or else when the end is noticed, but at the latest two leases after its last
-- heartbeat. The last statement of its session came within one lease, and the
-- server has not kept the session for longer than one more.
CREATE FUNCTION {term_end}(last_heartbeat timestamptz, lease_ms integer, died_at timestamptz, noticed_at timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE
RETURN least(coalesce(died_at, noticed_at), last_heartbeat + lease_ms * interval '2 milliseconds');

-- Returns the last time at which a leader is known to have lived in its term: its last
-- heartbeat, or the begin of the term if that was later. Null if the heartbeat is not
-- known.
CREATE FUNCTION {last_sign}(last_heartbeat timestamptz, acquired_at timestamptz)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN last_heartbeat IS NOT NULL THEN greatest(last_heartbeat, acquired_at) END;

CREATE TABLE {history} (
    role text NOT NULL,
    term bigint NOT NULL,
    node_id uuid NOT NULL,
    node_name text NOT NULL,
    incarnation integer NOT NULL,
    acquired_at timestamptz NOT NULL,
    ended_at timestamptz,
    end_reason text,
    ended_by text NOT NULL DEFAULT '',
    end_cause text NOT NULL DEFAULT '',
    vacant_ms double precision,
    silent_ms double precision,
    blocked_by text NOT NULL DEFAULT '',
    PRIMARY KEY (role, term)
);

CREATE INDEX "{prefix}history_ended_at" ON {history} (ended_at);

COMMENT ON TABLE {history} IS 'Terms that have ended, written when the next one begins.';

-- The history of the nodes. Triggers write it, so that it always agrees with the
-- registry.
CREATE TABLE {node_history} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    node_id uuid NOT NULL,
    node_name text NOT NULL,
    incarnation integer NOT NULL,
    status text NOT NULL,
    previous text NOT NULL,
    changed_by text NOT NULL DEFAULT '',
    outage_since timestamptz,
    silent boolean NOT NULL DEFAULT false
);

CREATE INDEX "{prefix}node_history_at" ON {node_history} (at);

-- Outages are found by it among all changes.
CREATE INDEX "{prefix}node_history_outages" ON {node_history} (outage_since) WHERE outage_since IS NOT NULL;

COMMENT ON TABLE {node_history} IS 'Every change of a node''s status or session; the status left means that it went, and previous is empty where it came.';
COMMENT ON COLUMN {node_history}.changed_by IS 'The requester of the change; empty if there is none.';

COMMENT ON COLUMN {node_history}.silent IS 'Whether a node that died had been silent: its lease had expired, or its trust window had ended.';
COMMENT ON COLUMN {node_history}.outage_since IS 'The last heartbeat of any node before this session, if no node reached the database from then on until this session opened.';

-- Runs with the rights of its owner: a user that may write a node's row need not be
-- able to write its history. A death and another session have no requester: the row then
-- still has the requester of the previous status.
--
-- A session ends an outage if it is the first one on a server that has lost its locks,
-- or if its node returns to a server that has received no heartbeat of any node for
-- longer than their leases.
--
-- A node that returns may have closed its session itself because its trust window had
-- ended. The others found the session closed, as after a crash: their records are corrected.
--
-- The rows of the history may have been copied without the position of their sequence: no
-- node could join until it has passed them. Later attempts follow the last row.
CREATE FUNCTION {record_node}() RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $tenure_function$
DECLARE
    is_back constant boolean := TG_OP = 'UPDATE';
    numbers constant regclass := pg_get_serial_sequence({node_history:regclass}::text, 'id');
    silent_since timestamptz;
BEGIN
    IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND NEW.incarnation <> OLD.incarnation THEN
        SELECT max(n.last_heartbeat)
        INTO silent_since
        FROM (
            SELECT o.last_heartbeat, o.lease_ms, o.server_lineage, o.server_epoch
            FROM {nodes} o
            WHERE o.id <> NEW.id AND o.status <> 'dead'
            UNION ALL
            SELECT OLD.last_heartbeat, OLD.lease_ms, OLD.server_lineage, OLD.server_epoch
            WHERE is_back AND OLD.status <> 'dead'
        ) n
        HAVING bool_and((n.server_lineage, n.server_epoch) <> (NEW.server_lineage, NEW.server_epoch))
            OR is_back AND bool_and(n.last_heartbeat + n.lease_ms * interval '1 millisecond' < NEW.last_heartbeat);
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.incarnation <> OLD.incarnation AND NEW.fell_silent THEN
        UPDATE {node_history} h
        SET silent = true
        WHERE h.at >= OLD.last_heartbeat AND h.node_id = NEW.id AND h.incarnation = OLD.incarnation AND h.status = 'dead';
        UPDATE {history} h
        SET end_reason = 'lease_expired'
        WHERE h.ended_at >= OLD.last_heartbeat AND h.node_id = NEW.id AND h.incarnation = OLD.incarnation AND h.end_reason = 'crashed';
    END IF;
    IF TG_OP = 'DELETE' AND OLD.status = 'dead' THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1..3 LOOP
        IF TG_OP = 'DELETE' THEN
            INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous)
            VALUES (clock_timestamp(), OLD.id, OLD.name, OLD.incarnation, 'left', OLD.status)
            ON CONFLICT DO NOTHING;
        ELSE
            INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous, changed_by, outage_since, silent)
            VALUES (
                clock_timestamp(), NEW.id, NEW.name, NEW.incarnation, NEW.status,
                CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '' END,
                CASE WHEN TG_OP = 'UPDATE' AND NEW.incarnation = OLD.incarnation AND NEW.status <> 'dead' THEN NEW.status_by ELSE '' END,
                silent_since,
                NEW.status = 'dead' AND coalesce(NEW.last_heartbeat + NEW.lease_ms * interval '1 millisecond' <= NEW.died_at, false)
            )
            ON CONFLICT DO NOTHING;
        END IF;
        EXIT WHEN FOUND;
        PERFORM setval(numbers, greatest(nextval(numbers), (SELECT max(h.id) FROM {node_history} h)));
    END LOOP;
    RETURN NULL;
END
$tenure_function$;

CREATE TRIGGER "{prefix}record_coming_and_going" AFTER INSERT OR DELETE ON {nodes}
FOR EACH ROW EXECUTE FUNCTION {record_node}();

-- Heartbeats do not fire it.
CREATE TRIGGER "{prefix}record_status" AFTER UPDATE OF status, incarnation ON {nodes}
FOR EACH ROW WHEN ((OLD.status, OLD.incarnation) IS DISTINCT FROM (NEW.status, NEW.incarnation))
EXECUTE FUNCTION {record_node}();

-- Requests to the leader of a role or to a node. Requests to a node have no
-- role. An offer asks a node whether it campaigns for a role; the row of the answer
-- has the nil UUID as node_id and the id of the offer as term.
CREATE TABLE {requests} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    role text NOT NULL,
    term bigint NOT NULL,
    node_id uuid NOT NULL,
    target uuid,
    force boolean NOT NULL DEFAULT false,
    requested_by text NOT NULL DEFAULT '',
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Sets of roles that nodes share among themselves, as their nodes define them.
CREATE TABLE {spreads} (
    name text PRIMARY KEY,
    roles jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by uuid NOT NULL
);

COMMENT ON TABLE {spreads} IS 'Sets of roles that nodes share among themselves.';

CREATE VIEW {leaders} AS
SELECT
    t.role,
    t.node_id,
    t.acquired_at,
    n.last_heartbeat + n.lease_ms * interval '1 millisecond' AS lease_until,
    t.term,
    coalesce(t.node_name, n.name) AS node_name,
    n.hostname,
    n.ip_address,
    n.http_port,
    n.grpc_port,
    n.labels,
    CASE WHEN n.name <> t.node_name THEN n.name ELSE '' END AS agent
FROM {terms} t
JOIN {nodes} n ON n.id = t.node_id AND n.incarnation = t.incarnation
WHERE t.ended_at IS NULL AND n.status <> 'dead';

-- One row for autoscalers: the amount of work. Only nodes that do work count: a node
-- that died, or is silent for longer than its lease, does none.
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
