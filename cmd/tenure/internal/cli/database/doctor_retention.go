package database

import (
	"fmt"
	"strings"

	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/retention"
)

// RetentionFinding is the name of the findings about the retention.
const RetentionFinding = "retention"

// retentionFindings returns a finding for each kind of rows kept for too long or
// impossible to remove, or one if there is none. It returns none if nothing was removed
// yet.
func retentionFindings(all []retention.Status) []doctor.Finding {
	var found []doctor.Finding
	for _, s := range all {
		if text := retentionProblem(s); text != "" {
			advice := retentionStands
			if s.Errors > 0 {
				advice = retentionFails
			}
			found = append(found, doctor.Finding{Name: RetentionFinding, Severity: doctor.Warning, Detail: text, Advice: advice})
		}
	}
	if len(found) == 0 && len(all) > 0 {
		return []doctor.Finding{{Name: RetentionFinding, Detail: "no row is kept for too long"}}
	}
	return found
}

// The remedies for the two problems.
const (
	retentionFails  = "grant the privileges of tenure migrate grants --compaction, or repair the tables: tenure migrate repair"
	retentionStands = "start tenure serve, whose leader of log-compactor removes old rows"
)

// retentionProblem returns the problem of the retention of a kind of rows, or "".
func retentionProblem(s retention.Status) string {
	var parts []string
	if s.Errors > 0 {
		parts = append(parts, fmt.Sprintf("old rows cannot be removed since %s: %s", console.DayTime(s.FailingSince), s.LastError))
	}
	if s.Late > 0 {
		parts = append(parts, fmt.Sprintf("the oldest row is of %s and should have been removed %s ago", console.DayTime(s.Oldest), console.SpellDuration(s.Late)))
	}
	if len(parts) == 0 {
		return ""
	}
	return s.Rows + ": " + strings.Join(parts, "; ")
}
