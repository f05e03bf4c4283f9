DROP TABLE {changes};
