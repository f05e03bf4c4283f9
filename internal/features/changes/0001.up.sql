-- The changes that operators made to processors and schedules.
CREATE TABLE {changes} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    action text NOT NULL,
    detail text NOT NULL DEFAULT ''
);

CREATE INDEX "{prefix}changes_at" ON {changes} (at);
