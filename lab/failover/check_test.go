package main

import (
	"errors"
	"strings"
	"testing"
)

// good is a result that meets each bound exactly.
func good() record {
	fault := func(name string, s summary) faultRecord {
		s.Rounds = 1000
		return faultRecord{Fault: name, Summary: &s}
	}
	return record{Format: recordFormat, Run: parameters{Lease: 1000, Roles: 1000}, Faults: []faultRecord{
		fault("sigkill", summary{P99: 10, Ratio: pointer(3.25), BeginRatio: pointer(2.25)}),
		fault("step-down", summary{P99: 10, Ratio: pointer(6), BeginRatio: pointer(3)}),
		fault("shutdown", summary{P99: 10, Ratio: pointer(6), BeginRatio: pointer(3)}),
		fault("sigkill-many-roles", summary{Max: 15}),
		fault("sigstop", summary{Max: 1100}),
		fault("network-cut", summary{Max: 1100}),
	}}
}

func TestCheckAcceptsResultsWithinBounds(t *testing.T) {
	var out strings.Builder
	if err := good().check(&out); err != nil || out.String() != "" {
		t.Errorf("got %v and %q, want neither an error nor a line", err, out.String())
	}
	if err := (record{Run: parameters{Roles: 1000}}).check(&out); err != nil {
		t.Errorf("a run that was asked for no judged fault: got %v", err)
	}
}

func TestCheckPrintsOneLineForEachMissedBound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*record)
		line   string
	}{
		"ratio":       {func(r *record) { r.Faults[0].Summary.Ratio = pointer(3.26) }, "missed: sigkill: the ratio of the medians is 3.26, want at most 3.25\n"},
		"begin ratio": {func(r *record) { r.Faults[1].Summary.BeginRatio = pointer(3.01) }, "missed: step-down: the ratio to the bare waiter that begins a term is 3.01, want at most 3.00\n"},
		"p99":         {func(r *record) { r.Faults[1].Summary.P99 = 10.1 }, "missed: step-down: p99 in ms is 10.10, want at most 10.00\n"},
		"overlap":     {func(r *record) { r.Faults[2].Summary.BothTrusting = 0.1 }, "missed: shutdown: the overlap of two terms in ms is 0.10, want at most 0.00\n"},
		"many roles":  {func(r *record) { r.Faults[3].Summary.Max = 16 }, "missed: sigkill-many-roles: the slowest round in ms is 16.00, want at most 15.00\n"},
		"more roles":  {func(r *record) { r.Run.Roles, r.Faults[3].Summary.Max = 10000, 61 }, "missed: sigkill-many-roles: the slowest round in ms is 61.00, want at most 60.00\n"},
		"silent":      {func(r *record) { r.Faults[4].Summary.Max = 1101 }, "missed: sigstop: the slowest round in ms is 1101.00, want at most 1100.00\n"},
		"unmeasured":  {func(r *record) { r.Faults[5].NotMeasured = "no namespaces" }, "missed: network-cut: not measured: no namespaces\n"},
		"no round":    {func(r *record) { r.Faults[5].Summary = nil }, "missed: network-cut: no round was measured\n"},
		"bare waiter": {func(r *record) { r.Faults[0].Summary.Ratio = nil }, "missed: sigkill: the bare waiter was not measured\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.change(&r)
			var out strings.Builder
			if err := r.check(&out); !errors.Is(err, errMissed) || out.String() != c.line {
				t.Errorf("got %v and %q, want errMissed and %q", err, out.String(), c.line)
			}
		})
	}
}

// A p99 of few rounds is the slowest round, which one busy moment of the machine decides.
func TestCheckJudgesTailOfManyRoundsOnly(t *testing.T) {
	r := good()
	r.Faults[0].Summary.Rounds, r.Faults[0].Summary.P99 = roundsOfTail-1, 1000
	var out strings.Builder
	if err := r.check(&out); err != nil {
		t.Errorf("got %v and %q, want no judgment of the p99", err, out.String())
	}
}

func TestEveryRunIsJudgedByOverlaps(t *testing.T) {
	r := good()
	if err := r.checkOverlaps(); err != nil {
		t.Errorf("without an overlap: got %v", err)
	}
	r.Faults[0].Summary.BothTrusting = 0.1
	if err := r.checkOverlaps(); !errors.Is(err, errOverlap) {
		t.Errorf("got %v, want %v", err, errOverlap)
	}
}
