package alerting

// State is what an alert is.
type State string

// The states of an alert, and of a rule: that of its alert that is worst.
const (
	Inactive State = "inactive"
	Pending  State = "pending" // the condition holds, but not for long enough
	Firing   State = "firing"
)
