DROP TABLE {runs};
DROP TABLE {schedules};
