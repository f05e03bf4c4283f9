package main

// The variables that a command finds in its environment.
const (
	roleVariable     = "TENURE_ROLE"
	termVariable     = "TENURE_TERM"
	nodeVariable     = "TENURE_NODE"
	nodeNameVariable = "TENURE_NODE_NAME"
	dsnVariable      = "TENURE_DSN"
)

// commandVariables are all that commands find, on schedules too.
var commandVariables = append([]string{roleVariable, termVariable, nodeVariable, nodeNameVariable, dsnVariable}, scheduleVariables...)

// The variables that a command on a schedule finds in its environment, beside
// those of every command.
const (
	scheduleVariable     = "TENURE_SCHEDULE"
	scheduledForVariable = "TENURE_SCHEDULED_FOR"
	attemptVariable      = "TENURE_ATTEMPT"
	runVariable          = "TENURE_RUN"
	requestedByVariable  = "TENURE_REQUESTED_BY"
)

var scheduleVariables = []string{scheduleVariable, scheduledForVariable, attemptVariable, runVariable, requestedByVariable}
