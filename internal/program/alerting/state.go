package alerting

// State is the state of an alert.
type State string

// The states of an alert. A rule has the state of its worst alert.
const (
	Inactive State = "inactive"
	Pending  State = "pending" // the condition holds, but not for long enough
	Firing   State = "firing"
)
