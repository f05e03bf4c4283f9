package record

import "github.com/exactly-one/tenure/internal/audit"

// Audit is a list of actions of operators as printed.
type Audit struct {
	Actions []AuditAction `json:"actions"`
}

// AuditAction is one action of an operator as printed.
type AuditAction struct {
	At     Time   `json:"time"`
	By     string `json:"requested_by"`
	Kind   string `json:"kind"` // role, node, schedule, processor or alert
	Name   string `json:"name"`
	Action string `json:"action"`
	Detail string `json:"detail,omitempty"`
	Result string `json:"result"` // done, failed, or requested: no effect is on record
}

// NewAudit returns actions as printed.
func NewAudit(entries []audit.Entry) Audit {
	all := Audit{Actions: []AuditAction{}}
	for _, e := range entries {
		all.Actions = append(all.Actions, NewAuditAction(e))
	}
	return all
}

// NewAuditAction returns an action as printed.
func NewAuditAction(e audit.Entry) AuditAction {
	result := "requested"
	switch {
	case e.Failed:
		result = "failed"
	case e.Done:
		result = "done"
	}
	return AuditAction{Time(e.At), e.By, e.Kind, e.Name, e.Action, e.Detail, result}
}
