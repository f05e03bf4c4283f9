DROP TABLE {rollup_states};
DROP TABLE {run_days};
DROP TABLE {node_days};
DROP TABLE {term_days};
