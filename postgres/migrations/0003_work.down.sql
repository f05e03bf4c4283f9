DROP TABLE {runs};
DROP TABLE {schedules};
DROP TABLE {changes};
DROP TABLE {dead_letters};
DROP TABLE {processors};
DROP TABLE {events};
