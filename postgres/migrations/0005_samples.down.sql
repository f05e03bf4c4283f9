DROP TABLE {samples};
