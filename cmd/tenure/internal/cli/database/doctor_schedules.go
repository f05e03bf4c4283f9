package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// schedulesFinding is the name of the finding about schedules.
const schedulesFinding = "schedules"

// schedulesTimeout bounds reading the schedules.
const schedulesTimeout = 5 * time.Second

// examineSchedules returns what keeps schedules from their ticks, or nothing if there are
// no schedules. Why a database cannot be reached is another finding.
func (c *doctorCommand) examineSchedules(ctx context.Context, backend *postgres.Backend) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, schedulesTimeout)
	defer cancel()
	target, err := c.database.Target()
	if err != nil {
		return nil
	}
	pool, err := target.Pool(ctx, "doctor")
	if err != nil {
		return nil
	}
	defer pool.Close()
	versions, err := schema.Of(backend).Versions(ctx, pool)
	if err != nil || versions["schedules"].Present == 0 {
		return nil
	}
	all, err := cron.NewAdmin(backend, pool).List(ctx)
	switch {
	case err != nil:
		return []doctor.Finding{{Name: schedulesFinding, Severity: doctor.Warning, Detail: err.Error(), Advice: "grant what tenure migrate grants --work prints, or mend the tables as the other findings say"}}
	case len(all) == 0:
		return nil
	}
	return judgeSchedules(all)
}

// judgeSchedules returns the faults of schedules, one finding for each kind.
func judgeSchedules(all []cron.Status) []doctor.Finding {
	var failing, ahead, overdue []string
	for _, s := range all {
		switch {
		case s.Paused:
		case !s.FailingSince.IsZero():
			failing = append(failing, fmt.Sprintf("%s (%s)", s.Name, s.LastError))
		case s.Ahead > 0:
			ahead = append(ahead, fmt.Sprintf("%s (for %v)", s.Name, s.Ahead.Round(time.Second)))
		case s.Overdue > 0:
			overdue = append(overdue, fmt.Sprintf("%s (for %v)", s.Name, s.Overdue.Round(time.Second)))
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
