package main

import (
	"strings"
	"testing"
	"time"
)

func TestHistogramCountsEachRoundOnce(t *testing.T) {
	ms := time.Millisecond
	got := histogram([]time.Duration{2 * ms, 2*ms + 1, 3 * ms, 9 * ms, time.Hour}, []time.Duration{1500 * time.Microsecond})
	if first, last := got[0], got[len(got)-1]; first != (bucket{1.5, 0, 1}) || last != (bucket{70_000, 1, 0}) {
		t.Errorf("got %v to %v, want the bare round first and the longest in the last bucket of all", first, last)
	}
	counts := map[float64]int{}
	for _, b := range got {
		counts[b.UpTo] = b.Rounds
	}
	if counts[2] != 1 || counts[3] != 2 || counts[10] != 1 {
		t.Errorf("got %v, want 1 up to 2 ms, 2 up to 3 ms, 1 up to 10 ms", counts)
	}
	if got := histogram(nil, nil); got != nil {
		t.Errorf("got %v without rounds, want none", got)
	}
}

func TestPercentileIsNearestRank(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 100, 0.99: 198, 1: 200} {
		if got := percentile(all, p); got != want {
			t.Errorf("%v: got %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 0.5); got != 0 {
		t.Errorf("got %v without durations, want 0", got)
	}
}

func TestHistogramIsPrintedWithItsSlowRounds(t *testing.T) {
	f := faultRecord{
		Fault: "sigkill", SlowAbove: 15, Summary: &summary{Rounds: 3, P50: 2, P99: 40, Max: 40, Ratio: pointer(1.25)},
		Histogram: []bucket{{2, 2, 0}, {3, 0, 3}, {50, 1, 0}}, Causes: map[string]int{causeMachine: 1},
		Rounds: []roundRecord{{Round: 1, Took: 2}, {Round: 2, Took: 2}, {Round: 3, Took: 40, Cause: causeMachine, Detail: "a thread waited"}},
	}
	var text strings.Builder
	f.print(&text)
	want := `
sigkill: 3 rounds, p50 2.0, p99 40.0, max 40.0 ms; 1.25 times the bare waiter
   up to ms  rounds    bare
          2       2       0  ########################################
          3       0       3
         50       1       0  ####################
  1 of 3 rounds over 15.0 ms: machine 1
    round 3, 40.0 ms: machine: a thread waited
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	f.Causes, f.Rounds = map[string]int{causeUnknown: mostPrinted + 5}, nil
	for range mostPrinted + 5 {
		f.Rounds = append(f.Rounds, roundRecord{Took: 40, Cause: causeUnknown})
	}
	text.Reset()
	f.print(&text)
	if !strings.Contains(text.String(), "and 5 more: use -json") {
		t.Errorf("got\n%s\nwant the number of slow rounds that are left out", text.String())
	}
}
