DROP TABLE {alert_history};
DROP TABLE {alert_silences};
DROP TABLE {alert_notifications};
DROP TABLE {alert_states};
DROP TABLE {alert_rules};
