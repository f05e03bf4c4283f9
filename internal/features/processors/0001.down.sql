DROP TABLE {dead_letters};
DROP TABLE {processors};
