DROP TRIGGER "{prefix}record_status" ON {nodes};
DROP TRIGGER "{prefix}record_coming_and_going" ON {nodes};
DROP FUNCTION {record_node}();
DROP TABLE {node_history};
ALTER TABLE {nodes} DROP COLUMN died_at;
DROP INDEX {schema}."{prefix}history_ended_at";
ALTER TABLE {history} DROP COLUMN ended_by;
ALTER TABLE {terms} DROP COLUMN ended_by;
