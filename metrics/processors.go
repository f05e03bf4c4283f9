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

	status, led, processed, behind, lag, errors, deadLetters family
}

func newProcessorFamilies(config Config) processorFamilies {
	f := newFamilies(config, "processor")
	c := processorFamilies{
		most: config.MaxRoles,

		status:      f.gauge("status", "1 for the status that the processor is in; the number of processors in each for those without a name.", "processor", "status"),
		led:         f.gauge("led", "1 if a living leader runs the processor, 0 otherwise.", "processor"),
		processed:   f.counter("events_total", "Events that the processor is done with.", "processor"),
		behind:      f.gauge("behind_events", "Events that wait for the processor, counted up to a bound, when its leader looked last.", "processor"),
		lag:         f.gauge("lag_seconds", "For how long the first of the waiting events has waited, 0 if none does.", "processor"),
		errors:      f.gauge("consecutive_errors", "Failed attempts of the processor since the last that succeeded.", "processor"),
		deadLetters: f.gauge("dead_letters", "Events that the processor gave up and that nobody replayed.", "processor"),
	}
	c.families = f
	return c
}

var processorStatuses = []string{"active", "paused", "failed"}

// processorFigures are what is told of one processor, or of many: sums, and of
// what cannot be summed up the worst.
type processorFigures struct {
	statuses                                               map[string]int
	led                                                    int
	processed, behind, lag, consecutiveErrors, deadLetters float64
}

func (f *processorFigures) add(s processor.Status, now time.Time) {
	if f.statuses == nil {
		f.statuses = map[string]int{}
	}
	f.statuses[s.Status]++
	if s.Led {
		f.led++
	}
	f.processed += float64(s.Processed)
	f.behind += float64(s.Behind)
	if !s.WaitingSince.IsZero() {
		f.lag = max(f.lag, now.Sub(s.WaitingSince).Seconds())
	}
	f.consecutiveErrors = max(f.consecutiveErrors, float64(s.Errors))
	f.deadLetters += float64(s.DeadLetters)
}

func (c *processorFamilies) collect(to chan<- prometheus.Metric, processors []processor.Status, now time.Time) {
	if len(processors) == 0 {
		return
	}
	if c.most >= 0 && len(processors) > c.most {
		var all processorFigures
		for _, s := range processors {
			all.add(s, now)
		}
		c.send(to, "", all)
		return
	}
	for _, s := range processors {
		var one processorFigures
		one.add(s, now)
		c.send(to, s.Name, one)
	}
}

func (c *processorFamilies) send(to chan<- prometheus.Metric, name string, f processorFigures) {
	for _, status := range processorStatuses {
		c.status.send(to, float64(f.statuses[status]), name, status)
	}
	c.led.send(to, float64(f.led), name)
	c.processed.send(to, f.processed, name)
	c.behind.send(to, f.behind, name)
	c.lag.send(to, f.lag, name)
	c.errors.send(to, f.consecutiveErrors, name)
	c.deadLetters.send(to, f.deadLetters, name)
}
