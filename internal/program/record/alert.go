package record

// Alerts is the printed result.
type Alerts struct {
	Alerts []Alert `json:"alerts"`
}

// Alert is an alert as printed.
type Alert struct {
	Name                 string            `json:"name"`
	State                string            `json:"state"`
	Condition            string            `json:"condition"`
	For                  float64           `json:"for_seconds"`
	Severity             string            `json:"severity"`
	Labels               map[string]string `json:"labels"`
	Annotations          map[string]string `json:"annotations"`
	Description          string            `json:"description"`
	Runbook              string            `json:"runbook"`
	Notify               []string          `json:"notify"`
	ChangedAt            Time              `json:"changed_at"`
	ChangedBy            string            `json:"changed_by"`
	Problem              string            `json:"problem"`
	PendingNotifications int               `json:"pending_notifications"`
	FailedNotifications  int               `json:"failed_notifications"`
	NotificationProblem  string            `json:"notification_problem"`
	Series               []AlertSeries     `json:"series"`
}

// AlertSeries is a pending or firing series of an alert.
type AlertSeries struct {
	State       string            `json:"state"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Value       string            `json:"value"` // a string, since it may be NaN or infinite
	ActiveAt    Time              `json:"active_at"`
	FiredAt     Time              `json:"fired_at"` // null while pending

	VacantSince       Time   `json:"vacant_since"` // null if that is not known
	Incident          string `json:"incident"`
	AcknowledgedBy    string `json:"acknowledged_by"`
	AcknowledgedUntil Time   `json:"acknowledged_until"`
	SilencedBy        string `json:"silenced_by"`
	SilencedUntil     Time   `json:"silenced_until"`
}

// AlertHistory is the printed history of alerts.
type AlertHistory struct {
	Alerts []PastAlert `json:"alerts"`
}

// PastAlert is an alert in the history, as printed.
type PastAlert struct {
	Name           string            `json:"name"`
	Severity       string            `json:"severity"`
	Labels         map[string]string `json:"labels"`
	Summary        string            `json:"summary"`
	Incident       string            `json:"incident"`
	FiredAt        Time              `json:"fired_at"`
	EndedAt        Time              `json:"ended_at"` // null while it fires
	SilencedBy     string            `json:"silenced_by"`
	AcknowledgedBy string            `json:"acknowledged_by"`
}

// Silences is the printed list of silences.
type Silences struct {
	Silences []Silence `json:"silences"`
}

// Silence is a silence as printed.
type Silence struct {
	Number    int64             `json:"number"`
	Alert     string            `json:"alert"` // empty for all
	Match     map[string]string `json:"match"`
	Comment   string            `json:"comment"`
	CreatedBy string            `json:"created_by"`
	CreatedAt Time              `json:"created_at"`
	Until     Time              `json:"until"`
	EndedBy   string            `json:"ended_by"`
	EndedAt   Time              `json:"ended_at"` // null unless it was ended early
}
