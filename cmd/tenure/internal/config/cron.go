package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
)

// CommandSchedule is one table of [[cron]]: a schedule without its job, which is
// to run a command.
type CommandSchedule struct {
	cron.Schedule

	Command []string // with its arguments
}

// Schedules are the tables of [[cron]] in their order. What a table leaves out has
// the default of package cron.
func (f *File) Schedules() []CommandSchedule {
	if f == nil {
		return nil
	}
	var all []CommandSchedule
	for i := range f.elements["cron"] {
		table := fmt.Sprintf("cron[%d].", i)
		limit, _ := f.lookup(table + "catch_up_limit").value.(int64)
		words, _ := f.lookup(table + "command").value.([]string)
		all = append(all, CommandSchedule{
			Schedule: cron.Schedule{
				Name:         f.text(table + "name"),
				Expression:   f.text(table + "schedule"),
				Zone:         f.text(table + "timezone"),
				CatchUp:      cron.CatchUp(f.text(table + "catch_up")),
				CatchUpLimit: int(limit),
				Overlap:      cron.Overlap(f.text(table + "overlap")),
				Policy:       cron.Policy(strings.ReplaceAll(f.text(table+"policy"), "-", "_")),
				Jitter:       f.length(table + "jitter"),
				Timeout:      f.length(table + "timeout"),
			},
			Command: slices.Clone(words),
		})
	}
	return all
}

// checkSchedules checks what only package cron understands.
func (r *reader) checkSchedules() {
	for i, schedule := range r.file.Schedules() {
		table := fmt.Sprintf("cron[%d].", i)
		if schedule.Name != "" {
			r.understood(table+"name", tenure.NamedRole(schedule.Name).Validate())
		}
		zone, err := cron.LoadZone(schedule.Zone)
		r.understood(table+"timezone", err)
		if schedule.Expression != "" {
			_, err = cron.Parse(schedule.Expression, zone)
			r.understood(table+"schedule", err)
		}
	}
}

// understood reports the fault of a value if err is not nil.
func (r *reader) understood(path string, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	for _, category := range []error{tenure.ErrInvalidConfig, tenure.ErrInvalidRole} {
		text = strings.TrimPrefix(text, category.Error()+": ")
	}
	r.fault(r.file.lookup(path).at, "%s: %s", path, text)
}
