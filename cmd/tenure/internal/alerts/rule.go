package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/common/model"

	"github.com/exactly-one/tenure"
)

// Rule says what to watch and whom to notify.
type Rule struct {
	Name string
	// Condition is PromQL. Each series that it yields is an alert.
	Condition string
	// For is how long a series must have been there before its alert fires.
	For time.Duration
	// Severity is info, warning, error or critical.
	Severity string
	// Labels are added to those of the series; with the same name they win. Labels
	// and annotations are templates, as Prometheus has them.
	Labels, Annotations map[string]string
	// Description says more than the summary, and Runbook is the address of a page on
	// what to do. Both are templates, which become annotations of these names.
	Description, Runbook string
	// Notify are addresses of notifiers: "pagerduty", "slack:#ops".
	Notify []string
}

// Role returns the role that the condition names, if it names one.
func (r Rule) Role() string {
	roles := rolesIn(r.Condition)
	if len(roles) == 0 || slices.ContainsFunc(roles, func(role string) bool { return role != roles[0] }) {
		return ""
	}
	return roles[0]
}

// templates are the annotations with the description and the runbook.
func (r Rule) templates() map[string]string {
	all := map[string]string{}
	maps.Copy(all, r.Annotations)
	for name, text := range map[string]string{"description": r.Description, "runbook": r.Runbook} {
		if text != "" {
			all[name] = text
		}
	}
	return all
}

// Severities are what an alert can be, the least first.
var Severities = []string{"info", "warning", "error", "critical"}

// Validate checks a rule. The error matches tenure.ErrInvalidConfig; that of a
// condition is a [*ConditionError] too.
func (r Rule) Validate() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: the alert %q: %w", tenure.ErrInvalidConfig, r.Name, fmt.Errorf(format, args...))
	}
	if r.Name == "" || strings.ContainsFunc(r.Name, unicode.IsControl) {
		return invalid("its name is empty or has control characters")
	}
	if !slices.Contains(Severities, r.Severity) {
		return invalid("its severity is %q; there are %s", r.Severity, strings.Join(Severities, ", "))
	}
	if _, err := parse(r.Condition); err != nil {
		return invalid("%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		if err := CheckLabel(name); err != nil {
			return invalid("%w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if err := CheckAnnotation(name); err != nil {
			return invalid("%w", err)
		}
	}
	for name, text := range map[string]string{"description": r.Description, "runbook": r.Runbook} {
		if text != "" && r.Annotations[name] != "" {
			return invalid("its %s is also an annotation: leave one out", name)
		}
	}
	for _, templates := range []map[string]string{r.Labels, r.templates()} {
		for _, name := range slices.Sorted(maps.Keys(templates)) {
			if err := CheckTemplate(templates[name]); err != nil {
				return invalid("%s: %w", name, err)
			}
		}
	}
	return nil
}

// CheckLabel refuses the name of a label that Prometheus would refuse, and those
// that the program sets.
func CheckLabel(name string) error {
	switch {
	case !isName(name):
		return fmt.Errorf("%q cannot be the name of a label: use letters, digits and _, and do not begin with a digit", name)
	case name == "alertname" || name == "severity" || name == model.MetricNameLabel:
		return fmt.Errorf("the label %q is set by the program: leave it out", name)
	}
	return nil
}

// CheckAnnotation refuses the name of an annotation that Prometheus would refuse.
func CheckAnnotation(name string) error {
	if !isName(name) {
		return fmt.Errorf("%q cannot be the name of an annotation: use letters, digits and _, and do not begin with a digit", name)
	}
	return nil
}

func isName(text string) bool { return model.LegacyValidation.IsValidLabelName(text) }
