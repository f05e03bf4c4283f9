package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/retry"
)

// CommandSchedule is one table of [[cron]]: a schedule for a command, without its job.
type CommandSchedule struct {
	cron.Schedule

	Command []string // with its arguments

	// RetryExitCodes are the exit codes after which the command is tried again.
	RetryExitCodes []int
}

// Schedules are the tables of [[cron]] in their order. Missing keys have the defaults of
// package cron.
func (f *File) Schedules() []CommandSchedule {
	if f == nil {
		return nil
	}
	var all []CommandSchedule
	for i := range f.elements["cron"] {
		table := fmt.Sprintf("cron[%d].", i)
		limit, _ := f.lookup(table + "catch_up_limit").value.(int64)
		words, _ := f.lookup(table + "command").value.([]string)
		retries, _ := f.lookup(table + "retries").value.(int64)
		codes, _ := f.lookup(table + "retry_exit_codes").value.([]string)
		one := CommandSchedule{
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
				Retries:      int(retries),
			},
			Command: slices.Clone(words),
		}
		for _, code := range codes {
			n, _ := strconv.Atoi(code) // exitCodes has checked it
			one.RetryExitCodes = append(one.RetryExitCodes, n)
		}
		if retries > 0 {
			one.Backoff = retry.ExponentialBackoff{Base: f.length(table + "retry_base"), Max: f.length(table + "retry_max")}
		}
		all = append(all, one)
	}
	return all
}

// checkSchedules applies the checks of package cron.
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
		r.checkRetries(table, schedule)
	}
}

// checkRetries checks the keys of retries against each other.
func (r *reader) checkRetries(table string, schedule CommandSchedule) {
	if schedule.Retries > 0 && len(schedule.RetryExitCodes) == 0 {
		r.fault(r.file.lookup(table+"retries").at, "%sretries needs %sretry_exit_codes", table, table)
	}
	for _, name := range []string{"retry_exit_codes", "retry_base", "retry_max"} {
		if has := r.file.lookup(table + name); has.key != nil && schedule.Retries == 0 {
			r.fault(has.at, "%s%s needs %sretries", table, name, table)
		}
	}
	base, limit := r.file.length(table+"retry_base"), r.file.length(table+"retry_max")
	base = cmp.Or(base, time.Second)
	limit = cmp.Or(limit, 30*time.Second)
	if base > limit {
		r.fault(r.file.lookup(table+"retry_base").at, "%sretry_base (%s) is longer than %sretry_max (%s)", table, WrittenDuration(base), table, WrittenDuration(limit))
	}
}

// exitCodes checks for a list of exit codes of failed commands.
func exitCodes(value any) error {
	items, _ := value.([]string)
	for _, item := range items {
		if n, err := strconv.Atoi(item); err != nil || n < 1 || n > 255 {
			return fmt.Errorf("%q is not an exit code from 1 to 255", item)
		}
	}
	return nil
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
