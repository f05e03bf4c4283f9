package settings

// The variables that a command finds in its environment.
const (
	RoleVariable     = "TENURE_ROLE"
	TermVariable     = "TENURE_TERM"
	NodeVariable     = "TENURE_NODE"
	NodeNameVariable = "TENURE_NODE_NAME"
	DSNVariable      = "TENURE_DSN"
)

// CommandVariables are all that commands find, on schedules too.
var CommandVariables = append([]string{RoleVariable, TermVariable, NodeVariable, NodeNameVariable, DSNVariable}, scheduleVariables...)

// The variables that a command on a schedule finds in its environment, beside
// those of every command.
const (
	ScheduleVariable     = "TENURE_SCHEDULE"
	ScheduledForVariable = "TENURE_SCHEDULED_FOR"
	AttemptVariable      = "TENURE_ATTEMPT"
	RunVariable          = "TENURE_RUN"
	RequestedByVariable  = "TENURE_REQUESTED_BY"
)

var scheduleVariables = []string{ScheduleVariable, ScheduledForVariable, AttemptVariable, RunVariable, RequestedByVariable}
