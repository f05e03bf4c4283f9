package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/processor"
)

// processorFamilies are the metrics of processors.
type processorFamilies struct {
	families families
	most     int // that have series of their own; negative for no bound

	status, led, processed, behind, held, lag, errors, panics, deadLetters family
	horizon                                                                family // of the database
}

func newProcessorFamilies(config Config) processorFamilies {
	f := newFamilies(config, "processor")
	c := processorFamilies{
		most: config.MaxRoles,

		status:      f.gauge("status", "1 for the status that the processor is in; the number of processors in each for those without a name.", "processor", "status"),
		led:         f.gauge("led", "1 if a living leader runs the processor, 0 otherwise.", "processor"),
		processed:   f.counter("events_total", "Events that the processor is done with.", "processor"),
		behind:      f.gauge("behind_events", "Events that wait for the processor, counted up to a bound, when its leader looked last.", "processor"),
		held:        f.gauge("held_events", "Those of them that wait for the end of older transactions.", "processor"),
		lag:         f.gauge("lag_seconds", "For how long the first of the waiting events has waited, 0 if none does.", "processor"),
		errors:      f.gauge("consecutive_errors", "Failed attempts of the processor since the last that succeeded.", "processor"),
		panics:      f.counter("panics_total", "Calls of the processor's handler that panicked.", "processor"),
		deadLetters: f.gauge("dead_letters", "Events that the processor gave up and that nobody replayed.", "processor"),
		horizon:     f.gauge("horizon_age_seconds", "For how long the oldest transaction has been open that may still write, in the whole database cluster."),
	}
	c.families = f
	return c
}

var processorStatuses = []string{"active", "paused", "failed"}

// processorFigures are what is told of one processor, or of many: sums, and of
// what cannot be summed up the worst.
type processorFigures struct {
	statuses                                     map[string]int
	led                                          int
	processed, behind, held, panics, deadLetters int64
	consecutiveErrors                            int
	lag                                          time.Duration
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
}

func (c *processorFamilies) collect(to chan<- prometheus.Metric, last *reading) {
	if len(last.processors) == 0 {
		return
	}
	c.horizon.send(to, last.horizon.Age().Seconds())
	if c.most >= 0 && len(last.processors) > c.most {
		var all processorFigures
		for _, s := range last.processors {
			all.add(s, last.lags[s.Name])
		}
		c.send(to, "", all)
		return
	}
	for _, s := range last.processors {
		var one processorFigures
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
	c.errors.send(to, float64(f.consecutiveErrors), name)
	c.panics.send(to, float64(f.panics), name)
	c.deadLetters.send(to, float64(f.deadLetters), name)
}
