package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

// round is one round of a scenario. bare is nil without a bare waiter.
type round struct {
	outcome
	bare  *limit
	facts facts
}

// results are the rounds of one scenario.
type results struct {
	scenario   scenario
	lease      time.Duration
	slow       time.Duration // what -slow says
	rounds     []round
	overlap    time.Duration
	unmeasured error // why nothing was measured
}

func (r results) took() []time.Duration {
	all := make([]time.Duration, len(r.rounds))
	for i, one := range r.rounds {
		all[i] = one.outcome.took
	}
	return all
}

// bare returns the times of the bare waiter: until it had the lock, and until it had
// begun its terms.
func (r results) bare() (locked, begun []time.Duration) {
	for _, one := range r.rounds {
		if one.bare != nil {
			locked, begun = append(locked, one.bare.locked), append(begun, one.bare.begun)
		}
	}
	return locked, begun
}

// slowAbove is from when on a round is slow.
func (r results) slowAbove() time.Duration {
	if r.scenario.slow {
		return r.lease + r.slow
	}
	return r.slow
}

// causes returns the rounds, the slow ones with their cause: why they took longer than the bare waiter
// usually does, or, where there is none, than the fastest round.
func (r results) causes(log serverLog) []roundRecord {
	all := make([]roundRecord, len(r.rounds))
	if len(all) == 0 {
		return all
	}
	usual := slices.Min(r.took())
	if locked, _ := r.bare(); len(locked) > 0 {
		usual = percentile(locked, 0.5)
	}
	var expected time.Duration
	if r.scenario.slow {
		expected = r.lease
	}
	for i, one := range r.rounds {
		within := children.Interval{From: one.begun, To: one.at}
		log.addTo(&one.facts, within, one.leader)
		all[i] = roundRecord{Round: i + 1, Started: one.begun.UTC(), Took: inMilliseconds(one.took), Note: one.note, Facts: one.facts}
		if one.bare != nil {
			all[i].Bare, all[i].BareBegin = pointer(inMilliseconds(one.bare.locked)), pointer(inMilliseconds(one.bare.begun))
		}
		if one.took > r.slowAbove() {
			all[i].Cause, all[i].Detail = one.facts.cause(max(0, one.took-usual), expected)
		}
	}
	return all
}

// record returns the scenario as -json writes it.
func (r results) record(log serverLog) faultRecord {
	f := faultRecord{Fault: r.scenario.name, Bound: r.bound(), SlowAbove: inMilliseconds(r.slowAbove())}
	if r.unmeasured != nil {
		f.NotMeasured = r.unmeasured.Error()
		return f
	}
	locked, _ := r.bare()
	f.Rounds, f.Histogram, f.Summary = r.causes(log), histogram(r.took(), locked), r.summary()
	for _, one := range f.Rounds {
		if one.Cause != "" {
			if f.Causes == nil {
				f.Causes = map[string]int{}
			}
			f.Causes[one.Cause]++
		}
	}
	return f
}

func (r results) summary() *summary {
	s := summarize(r.took(), r.overlap)
	locked, begun := r.bare()
	if len(locked) > 0 && s != nil {
		median := percentile(r.took(), 0.5)
		s.BareP50, s.Ratio = pointer(inMilliseconds(percentile(locked, 0.5))), ratio(median, percentile(locked, 0.5))
		s.BeginP50, s.BeginRatio = pointer(inMilliseconds(percentile(begun, 0.5))), ratio(median, percentile(begun, 0.5))
	}
	return s
}

// summarize returns nil without rounds.
func summarize(took []time.Duration, overlap time.Duration) *summary {
	if len(took) == 0 {
		return nil
	}
	return &summary{
		Rounds: len(took), P50: inMilliseconds(percentile(took, 0.5)), P99: inMilliseconds(percentile(took, 0.99)),
		Max: inMilliseconds(slices.Max(took)), BothTrusting: inMilliseconds(overlap),
	}
}

func ratio(a, b time.Duration) *float64 {
	if b <= 0 {
		return nil
	}
	return pointer(float64(a*1000/b) / 1000)
}

func pointer(f float64) *float64 { return &f }

func (r results) bound() string {
	if r.scenario.slow {
		return strings.ReplaceAll(r.scenario.bound, "lease", milliseconds(r.lease))
	}
	return r.scenario.bound
}

// String is the scenario's row of the table.
func (r results) String() string {
	if r.unmeasured != nil {
		return fmt.Sprintf("%-22s not measured: %v", r.scenario.name, r.unmeasured)
	}
	took, s := r.took(), r.summary()
	if s == nil {
		return fmt.Sprintf("%-22s %6d", r.scenario.name, 0)
	}
	line := fmt.Sprintf("%-22s %6d %9.1f %9.1f %9.1f %9s %6s %12s %6s %14.1f  %s", r.scenario.name, s.Rounds, s.P50, s.P99, s.Max,
		optional("%.1f", s.BareP50), optional("%.2f", s.Ratio), optional("%.1f", s.BeginP50), optional("%.2f", s.BeginRatio),
		s.BothTrusting, r.bound())
	notes := map[string][]time.Duration{}
	var order []string
	for i, one := range r.rounds {
		if one.note != "" {
			notes[one.note] = append(notes[one.note], took[i])
			order = append(order, one.note)
		}
	}
	slices.Sort(order)
	for _, note := range slices.Compact(order) {
		times := notes[note]
		line += fmt.Sprintf("\n%-22s %6d %9s %9s %9s", "  "+note, len(times), milliseconds(percentile(times, 0.5)), "", milliseconds(slices.Max(times)))
	}
	return line
}

func optional(format string, f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf(format, *f)
}
