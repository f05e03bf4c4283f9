-- What nodes tell about themselves beyond elections.
ALTER TABLE {nodes}
    ALTER COLUMN status SET DEFAULT 'joining',
    ADD COLUMN drained boolean NOT NULL DEFAULT false,
    ADD COLUMN in_flight integer NOT NULL DEFAULT 0,
    ADD COLUMN spreads jsonb NOT NULL DEFAULT '{}';

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
