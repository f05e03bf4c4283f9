DROP TABLE {sample_days};
DROP TABLE {samples};
