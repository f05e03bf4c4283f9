package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/cron"
)

// scheduleFamilies are the metrics of schedules.
type scheduleFamilies struct {
	families  families
	maxSeries int // maximum number with their own series; negative for no limit

	loaded, paused, runs, failures, panics family
	missed, next, lastBegan, lastSucceeded family
	overdue, ahead, errors                 family
}

func newScheduleFamilies(config Config) scheduleFamilies {
	f := newFamilies(config, "cron")
	c := scheduleFamilies{
		maxSeries: config.MaxRoles,

		loaded:        f.gauge("loaded", "1 if the current leader runs the schedule, 0 otherwise.", "schedule"),
		paused:        f.gauge("paused", "1 if the schedule is paused, 0 otherwise.", "schedule"),
		runs:          f.gauge("runs", "Runs of the schedule that wait or are in progress.", "schedule", "state"),
		failures:      f.counter("failures_total", "Runs of the schedule that failed, timed out or panicked.", "schedule"),
		panics:        f.counter("panics_total", "Runs of the schedule that panicked.", "schedule"),
		missed:        f.gauge("missed_ticks", "Ticks of the schedule that were missed for lack of a leader, among the stored runs.", "schedule"),
		next:          f.gauge("next_run_timestamp_seconds", "When the schedule ticks next, 0 if it does not.", "schedule"),
		lastBegan:     f.gauge("last_run_timestamp_seconds", "The tick of the last run that started, 0 if there is none.", "schedule"),
		overdue:       f.gauge("overdue_seconds", "How long a tick of the schedule has waited to be handled, if for more than a minute, 0 otherwise.", "schedule"),
		ahead:         f.gauge("ahead_seconds", "How long the schedule waits for the database's clock, which was set back, if for more than a minute, 0 otherwise.", "schedule"),
		errors:        f.gauge("errors", "How often in a row the leader of the schedule could not work.", "schedule"),
		lastSucceeded: f.gauge("last_run_succeeded", "1 if the last run that started succeeded, 0 otherwise.", "schedule"),
	}
	c.families = f
	return c
}

func (c *scheduleFamilies) collect(to chan<- prometheus.Metric, schedules []cron.Status) {
	if c.maxSeries >= 0 && len(schedules) > c.maxSeries {
		c.collectSum(to, schedules)
		return
	}
	for _, s := range schedules {
		c.loaded.send(to, boolValue(s.Loaded), s.Name)
		c.paused.send(to, boolValue(s.Paused), s.Name)
		c.sendRuns(to, s.Name, s.Waiting, s.Running)
		c.failures.send(to, float64(s.Failures), s.Name)
		c.panics.send(to, float64(s.Panics), s.Name)
		c.missed.send(to, float64(s.Missed), s.Name)
		c.next.send(to, seconds(s.Next), s.Name)
		c.overdue.send(to, s.Overdue.Seconds(), s.Name)
		c.ahead.send(to, s.Ahead.Seconds(), s.Name)
		c.errors.send(to, float64(s.Errors), s.Name)
		began, succeeded := 0.0, false
		if s.Last != nil {
			began, succeeded = seconds(s.Last.ScheduledFor), s.Last.State == cron.Succeeded
		}
		c.lastBegan.send(to, began, s.Name)
		c.lastSucceeded.send(to, boolValue(succeeded), s.Name)
	}
}

// collectSum sends the summable values, and the worst of some others.
func (c *scheduleFamilies) collectSum(to chan<- prometheus.Metric, schedules []cron.Status) {
	var loaded, paused float64
	var waiting, running, failures, panics, missed, errors int64
	var overdue, ahead time.Duration
	for _, s := range schedules {
		loaded += boolValue(s.Loaded)
		paused += boolValue(s.Paused)
		waiting, running = waiting+s.Waiting, running+s.Running
		failures, panics, missed = failures+s.Failures, panics+s.Panics, missed+s.Missed
		overdue, ahead, errors = max(overdue, s.Overdue), max(ahead, s.Ahead), max(errors, s.Errors)
	}
	c.loaded.send(to, loaded, "")
	c.paused.send(to, paused, "")
	c.sendRuns(to, "", waiting, running)
	c.failures.send(to, float64(failures), "")
	c.panics.send(to, float64(panics), "")
	c.missed.send(to, float64(missed), "")
	c.overdue.send(to, overdue.Seconds(), "")
	c.ahead.send(to, ahead.Seconds(), "")
	c.errors.send(to, float64(errors), "")
}

func (c *scheduleFamilies) sendRuns(to chan<- prometheus.Metric, name string, waiting, running int64) {
	c.runs.send(to, float64(waiting), name, string(cron.Waiting))
	c.runs.send(to, float64(running), name, string(cron.Running))
}
