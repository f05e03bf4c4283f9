package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/alerting"
)

// Rule is a condition to watch, and the notifiers to call. The program on each machine
// reads it too.
type Rule = alerting.Rule

// State is the state of an alert.
type State = alerting.State

// Status is a rule and its state.
type Status = alerting.Status

// Alert is a pending or firing series of a rule.
type Alert = alerting.Alert

// Silence is a time in which matching alerts fire without notifications.
type Silence = alerting.Silence

// The states of an alert. A rule has the state of its worst alert.
const (
	Inactive = alerting.Inactive
	Pending  = alerting.Pending
	Firing   = alerting.Firing
)

// RoleOf returns the role in the condition of a rule, if it names one.
func RoleOf(r Rule) string {
	roles := rolesIn(r.Condition)
	if len(roles) == 0 || slices.ContainsFunc(roles, func(role string) bool { return role != roles[0] }) {
		return ""
	}
	return roles[0]
}

// Validate checks a rule, its condition and its templates. The error matches
// tenure.ErrInvalidConfig. An error of the condition is a [*alerting.ConditionError] too.
func Validate(r Rule) error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: the alert %q: %w", tenure.ErrInvalidConfig, r.Name, fmt.Errorf(format, args...))
	}
	if r.Name == "" || strings.ContainsFunc(r.Name, unicode.IsControl) {
		return invalid("its name is empty or has control characters")
	}
	if !slices.Contains(alerting.Severities, r.Severity) {
		return invalid("its severity is %q; there are %s", r.Severity, strings.Join(alerting.Severities, ", "))
	}
	if _, err := parse(r.Condition); err != nil {
		return invalid("%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		if err := alerting.CheckLabel(name); err != nil {
			return invalid("%w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if err := alerting.CheckAnnotation(name); err != nil {
			return invalid("%w", err)
		}
	}
	for name, text := range map[string]string{"description": r.Description, "runbook": r.Runbook} {
		if text != "" && r.Annotations[name] != "" {
			return invalid("its %s is also an annotation: leave one out", name)
		}
	}
	for _, templates := range []map[string]string{r.Labels, r.Templates()} {
		for _, name := range slices.Sorted(maps.Keys(templates)) {
			if err := CheckTemplate(templates[name]); err != nil {
				return invalid("%s: %w", name, err)
			}
		}
	}
	return nil
}
