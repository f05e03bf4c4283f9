package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/processor"
)

// processorFamilies are the metrics of processors.
type processorFamilies struct {
	families  families
	maxSeries int // maximum number with their own series; negative for no limit

	status, led, processed, behind, held, lag, lagAge, errors, stuck, panics, deadLetters family
	horizon                                                                               family // of the database cluster
}

func newProcessorFamilies(config Config) processorFamilies {
	f := newFamilies(config, "processor")
	c := processorFamilies{
		maxSeries: config.MaxRoles,

		status:      f.gauge("status", "1 for the processor's status; for the series without a name, the number of processors with the status.", "processor", "status"),
		led:         f.gauge("led", "1 if a live leader runs the processor, 0 otherwise.", "processor"),
		processed:   f.counter("events_total", "Events that the processor has handled.", "processor"),
		behind:      f.gauge("behind_events", "Events that waited for the processor at its leader's last measurement, counted up to a limit.", "processor"),
		held:        f.gauge("held_events", "Those of them that waited for older transactions to end.", "processor"),
		lag:         f.gauge("lag_seconds", "How long the oldest waiting event has waited, 0 if none waits.", "processor"),
		lagAge:      f.gauge("lag_age_seconds", "How old the figures of the processor's waiting events were when they were read.", "processor"),
		errors:      f.gauge("consecutive_errors", "Failed attempts of the processor since the last successful one.", "processor"),
		stuck:       f.gauge("stuck_seconds", "How long the processor has been unable to work, 0 if it works.", "processor"),
		panics:      f.counter("panics_total", "Calls of the processor's handler that panicked.", "processor"),
		deadLetters: f.gauge("dead_letters", "Dead letters of the processor that were neither replayed nor dismissed.", "processor"),
		horizon:     f.gauge("horizon_age_seconds", "How long the oldest transaction that may still write has been open, in the whole database cluster."),
	}
	c.families = f
	return c
}

var processorStatuses = []string{"active", "paused", "failed"}

// processorFigures are the values of one processor or of many: sums, and the worst of
// values that cannot be summed.
type processorFigures struct {
	statuses                                     map[string]int
	led                                          int
	processed, behind, held, panics, deadLetters int64
	consecutiveErrors                            int
	lag, stuck                                   time.Duration
	lagAge                                       time.Duration // negative if no leader has measured the lag
}

func (f *processorFigures) add(s processor.Status, lag processor.Lag) {
	if f.statuses == nil {
		f.statuses = map[string]int{}
	}
	f.statuses[s.Status]++
	if s.Led {
		f.led++
	}
	f.processed += s.Processed
	f.behind += lag.Behind
	f.held += lag.BlockedByHorizon
	f.panics += s.Panics
	f.deadLetters += int64(s.DeadLetters)
	f.consecutiveErrors = max(f.consecutiveErrors, s.Errors)
	f.lag = max(f.lag, lag.OldestWait)
	if s.Status == processor.Active {
		f.stuck = max(f.stuck, s.StuckFor)
	}
	if !lag.AsOf.IsZero() {
		f.lagAge = max(f.lagAge, lag.Age)
	}
}

func (c *processorFamilies) collect(to chan<- prometheus.Metric, last *reading) {
	if len(last.processors) == 0 {
		return
	}
	c.horizon.send(to, last.horizon.Age().Seconds())
	if c.maxSeries >= 0 && len(last.processors) > c.maxSeries {
		all := processorFigures{lagAge: -1}
		for _, s := range last.processors {
			all.add(s, last.lags[s.Name])
		}
		c.send(to, "", all)
		return
	}
	for _, s := range last.processors {
		one := processorFigures{lagAge: -1}
		one.add(s, last.lags[s.Name])
		c.send(to, s.Name, one)
	}
}

func (c *processorFamilies) send(to chan<- prometheus.Metric, name string, f processorFigures) {
	for _, status := range processorStatuses {
		c.status.send(to, float64(f.statuses[status]), name, status)
	}
	c.led.send(to, float64(f.led), name)
	c.processed.send(to, float64(f.processed), name)
	c.behind.send(to, float64(f.behind), name)
	c.held.send(to, float64(f.held), name)
	c.lag.send(to, f.lag.Seconds(), name)
	if f.lagAge >= 0 {
		c.lagAge.send(to, f.lagAge.Seconds(), name)
	}
	c.errors.send(to, float64(f.consecutiveErrors), name)
	c.stuck.send(to, f.stuck.Seconds(), name)
	c.panics.send(to, float64(f.panics), name)
	c.deadLetters.send(to, float64(f.deadLetters), name)
}
