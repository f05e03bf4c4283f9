package record

// OperatorChange is a change of a schedule or a processor as printed.
type OperatorChange struct {
	At     Time   `json:"time"`
	By     string `json:"requested_by"`
	Name   string `json:"name"` // of the changed object
	Action string `json:"action"`
	Detail string `json:"detail,omitempty"`
}
