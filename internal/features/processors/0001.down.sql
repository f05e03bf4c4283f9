DROP TABLE {dead_letters};
DROP TABLE {processor_lags};
DROP TABLE {processors};
