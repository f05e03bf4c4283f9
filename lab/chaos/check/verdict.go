package check

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// The kinds of violations.
const (
	Linearizability = "linearizability"
	Overlap         = "overlap"
	Vacancy         = "vacancy"
	Order           = "order of writes"
	LostWrite       = "lost write"
	Ticks           = "ticks"
	Events          = "events"
	Webhooks        = "webhooks"
	Figures         = "figures"
	Resources       = "resources"
	Complaint       = "complaint" // found while the run lasted
)

// Violation is something that must not happen.
type Violation struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	At   int64  `json:"at,omitempty"` // when it showed; 0 if that is not known
}

// Gap is a vacancy of a role.
type Gap struct {
	Role string
	Kind string        // of the latest fault that can have caused it; "none" if there is none
	From time.Duration // since the begin of the script
	Took time.Duration
	Met  string // the faults that can have caused it
}

// Verdict is what a run has shown.
type Verdict struct {
	Violations []Violation
	Gaps       []Gap
	// Excused are overlaps that docs/explanation/guarantees.md allows.
	Excused []time.Duration
}

func (v *Verdict) violation(kind string, at int64, format string, args ...any) {
	v.Violations = append(v.Violations, Violation{kind, fmt.Sprintf(format, args...), at})
}

// since says when something was in the run.
func since(h *record.History, at int64) time.Duration {
	return time.Duration(at - h.Start).Round(time.Millisecond)
}
