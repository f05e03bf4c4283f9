package database

import (
	"fmt"
	"strings"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/program/console"
)

// schedulesFinding is the name of the finding about schedules.
const schedulesFinding = "schedules"

// judgeSchedules returns the faults of schedules, one finding for each kind.
func judgeSchedules(all []cron.Status) []doctor.Finding {
	if len(all) == 0 {
		return nil
	}
	var failing, ahead, overdue []string
	for _, s := range all {
		switch {
		case s.Paused:
		case !s.FailingSince.IsZero():
			failing = append(failing, fmt.Sprintf("%s (%s)", s.Name, s.LastError))
		case s.Ahead > 0:
			ahead = append(ahead, fmt.Sprintf("%s (for %s)", s.Name, console.SpellDuration(s.Ahead)))
		case s.Overdue > 0:
			overdue = append(overdue, fmt.Sprintf("%s (for %s)", s.Name, console.SpellDuration(s.Overdue)))
		}
	}
	var found []doctor.Finding
	add := func(names []string, detail, advice string) {
		if len(names) > 0 {
			found = append(found, doctor.Finding{Name: schedulesFinding, Severity: doctor.Warning, Detail: detail + ": " + strings.Join(names, ", "), Advice: advice})
		}
	}
	add(failing, "their leader cannot work", "remove the cause; the leader retries every second")
	add(ahead, "they wait for the database's clock, which was set back", "if the clock is right, have them continue from now: tenure cron pause, tenure cron resume")
	add(overdue, "they are overdue", "see whether a node leads their role: tenure cron list, tenure status")
	if len(found) == 0 {
		found = append(found, doctor.Finding{Name: schedulesFinding, Detail: fmt.Sprintf("%d, and none is overdue", len(all))})
	}
	return found
}
