DROP VIEW {autoscaling};
DROP TABLE {spreads};
ALTER TABLE {requests} DROP COLUMN force;
ALTER TABLE {nodes}
    DROP COLUMN spreads,
    DROP COLUMN in_flight,
    DROP COLUMN drained,
    ALTER COLUMN status SET DEFAULT 'active';
