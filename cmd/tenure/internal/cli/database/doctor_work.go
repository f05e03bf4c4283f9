package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retention"
)

// ProcessorsFinding is the name of the finding about processors.
const ProcessorsFinding = "processors"

// workTimeout limits the reads of these findings.
const workTimeout = 5 * time.Second

// mostNamed limits the processors named in a finding.
const mostNamed = 3

// examineWork returns the findings about schedules, processors and retention. An
// unreachable database, or a fault of its tables, is another finding.
func (c *doctorCommand) examineWork(ctx context.Context, backend *postgres.Backend) (found []doctor.Finding) {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
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
	if err != nil {
		return nil
	}
	if versions[features.Schedules.Name].Present > 0 {
		all, err := cron.NewAdmin(backend, pool).List(ctx)
		found = append(found, unreadable(schedulesFinding, err, judgeSchedules(all))...)
	}
	if versions[features.Rollups.Name].Present > 0 {
		all, err := retention.List(ctx, backend, pool)
		found = append(found, unreadable(RetentionFinding, err, retentionFindings(all))...)
	}
	if versions[features.Processors.Name].Present > 0 {
		all, err := processor.NewAdmin(backend, pool).List(ctx)
		found = append(found, unreadable(ProcessorsFinding, err, judgeProcessors(all))...)
	}
	return found
}

// unreadable returns a warning if there is an error, and otherwise the findings.
func unreadable(name string, err error, found []doctor.Finding) []doctor.Finding {
	if err == nil {
		return found
	}
	return []doctor.Finding{{
		Name: name, Severity: doctor.Warning, Detail: "cannot be read: " + err.Error(),
		Advice: "grant what tenure migrate grants --work prints, or mend the tables as the other findings say",
	}}
}

// judgeProcessors returns a finding about processors, if there are any.
func judgeProcessors(all []processor.Status) []doctor.Finding {
	if len(all) == 0 {
		return nil
	}
	var stuck []string
	for _, s := range all {
		if s.Status == processor.Active && s.StuckError != "" {
			stuck = append(stuck, fmt.Sprintf("%s has been unable to work for %s: %s", s.Name, console.SpellDuration(s.StuckFor), s.StuckError))
		}
	}
	if len(stuck) == 0 {
		return []doctor.Finding{{Name: ProcessorsFinding, Severity: doctor.OK, Detail: fmt.Sprintf("none of %d is stuck", len(all))}}
	}
	detail := strings.Join(stuck[:min(len(stuck), mostNamed)], "; ")
	if others := len(stuck) - mostNamed; others > 0 {
		detail += fmt.Sprintf("; and %d more", others)
	}
	return []doctor.Finding{{
		Name: ProcessorsFinding, Severity: doctor.Warning, Detail: detail, Advice: "fix the cause; tenure processor show NAME has the whole error",
	}}
}
