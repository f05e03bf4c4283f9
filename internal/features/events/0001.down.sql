DROP TABLE {events};
