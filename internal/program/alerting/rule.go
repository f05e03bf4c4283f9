package alerting

import (
	"fmt"
	"maps"
	"regexp"
	"time"
)

// Rule is a condition to watch, and the notifiers to call.
type Rule struct {
	Name string
	// Condition is PromQL. Each of its series is an alert.
	Condition string
	// For is how long a series must have been there before its alert fires.
	For time.Duration
	// Severity is info, warning, error or critical.
	Severity string
	// Labels are added to the labels of the series; with the same name they win. Labels
	// and annotations are templates, as Prometheus has them.
	Labels, Annotations map[string]string
	// Description says more than the summary, and Runbook is the address of a page with
	// instructions. Both are templates, and become annotations of these names.
	Description, Runbook string
	// Notify are addresses of notifiers: "pagerduty", "slack:#ops".
	Notify []string
}

// Templates are the annotations with the description and the runbook.
func (r Rule) Templates() map[string]string {
	all := map[string]string{}
	maps.Copy(all, r.Annotations)
	for name, text := range map[string]string{"description": r.Description, "runbook": r.Runbook} {
		if text != "" {
			all[name] = text
		}
	}
	return all
}

// Severities are the severities of an alert, the least first.
var Severities = []string{"info", "warning", "error", "critical"}

// CheckLabel refuses the name of a label if Prometheus would refuse it, or if the program
// sets it.
func CheckLabel(name string) error {
	switch {
	case !IsName(name):
		return fmt.Errorf("%q cannot be the name of a label: use letters, digits and _, and do not begin with a digit", name)
	case name == "alertname" || name == "severity" || name == "__name__":
		return fmt.Errorf("the label %q is set by the program: leave it out", name)
	}
	return nil
}

// CheckAnnotation refuses the name of an annotation if Prometheus would refuse it.
func CheckAnnotation(name string) error {
	if !IsName(name) {
		return fmt.Errorf("%q cannot be the name of an annotation: use letters, digits and _, and do not begin with a digit", name)
	}
	return nil
}

// IsName reports whether Prometheus takes a text as the name of a label.
func IsName(text string) bool { return labelName.MatchString(text) }

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ConditionError says where a condition is wrong.
type ConditionError struct {
	Offset       int // in bytes
	Line, Column int // in characters, counted from 1, within the condition
	Message      string
}

// Error describes the fault. A caller adds the place of the condition if it knows it.
func (e *ConditionError) Error() string { return e.Message }
