DROP TABLE {alert_notifications};
DROP TABLE {alert_states};
DROP TABLE {alert_rules};
