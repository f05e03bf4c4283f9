package settings

// The environment variables of a command.
const (
	RoleVariable     = "TENURE_ROLE"
	TermVariable     = "TENURE_TERM"
	SlotVariable     = "TENURE_SLOT"
	NodeVariable     = "TENURE_NODE"
	NodeNameVariable = "TENURE_NODE_NAME"
	DSNVariable      = "TENURE_DSN"
)

// CommandVariables are all variables of commands, including scheduled ones.
var CommandVariables = append([]string{RoleVariable, TermVariable, SlotVariable, NodeVariable, NodeNameVariable, DSNVariable}, scheduleVariables...)

// The additional environment variables of a command on a schedule.
const (
	ScheduleVariable     = "TENURE_SCHEDULE"
	ScheduledForVariable = "TENURE_SCHEDULED_FOR"
	AttemptVariable      = "TENURE_ATTEMPT"
	RunVariable          = "TENURE_RUN"
	RequestedByVariable  = "TENURE_REQUESTED_BY"
)

var scheduleVariables = []string{ScheduleVariable, ScheduledForVariable, AttemptVariable, RunVariable, RequestedByVariable}
