package record

// OperatorChanges is a list of changes as printed.
type OperatorChanges struct {
	Changes []OperatorChange `json:"changes"`
}

// OperatorChange is one change as printed.
type OperatorChange struct {
	At     Time   `json:"time"`
	By     string `json:"requested_by"`
	Name   string `json:"name"` // of the changed object
	Action string `json:"action"`
	Detail string `json:"detail,omitempty"`
}
