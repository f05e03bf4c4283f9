//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is a stretch of time in seconds after the start.
func at(from, to float64) children.Interval {
	second := float64(time.Second)
	return children.Interval{From: start.Add(time.Duration(from * second)), To: start.Add(time.Duration(to * second))}
}

// Two nodes that trust their terms at the same time are a violation, unless two
// servers acknowledged writes, replication is asynchronous, and FailoverWait does
// not cover that.
func TestOverlapsAreExcusedByASplitOnly(t *testing.T) {
	for name, test := range map[string]struct {
		synchronous  bool
		failoverWait time.Duration
		leads        [2]children.Interval
		writable     [2]children.Interval
		overlaps     int
		violations   int
	}{
		"one after the other":      {leads: [2]children.Interval{at(0, 10), at(14, 20)}, writable: [2]children.Interval{at(0, 9), at(10, 20)}},
		"both":                     {leads: [2]children.Interval{at(0, 10), at(9, 20)}, writable: [2]children.Interval{at(0, 5), at(6, 20)}, violations: 1},
		"both in a split":          {leads: [2]children.Interval{at(0, 10), at(7, 20)}, writable: [2]children.Interval{at(0, 9), at(3, 20)}, overlaps: 1},
		"both after a split":       {leads: [2]children.Interval{at(0, 20), at(7, 20)}, writable: [2]children.Interval{at(0, 9), at(3, 20)}, violations: 1},
		"both in a covered split":  {leads: [2]children.Interval{at(0, 10), at(7, 20)}, writable: [2]children.Interval{at(0, 9), at(3, 20)}, failoverWait: 10 * time.Second, violations: 1},
		"both, synchronous":        {leads: [2]children.Interval{at(0, 10), at(7, 20)}, writable: [2]children.Interval{at(0, 9), at(3, 20)}, synchronous: true, violations: 1},
		"split without an overlap": {leads: [2]children.Interval{at(0, 9), at(10, 20)}, writable: [2]children.Interval{at(0, 9), at(3, 20)}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bed{mode: mode{synchronous: test.synchronous}, options: options{lease: 4 * time.Second, failoverWait: test.failoverWait}}
			var claims []claim
			for i, name := range []string{"one", "two"} {
				claims = append(claims, claim{name, []children.Interval{test.leads[i]}})
				b.probes = append(b.probes, &probe{writable: []children.Interval{test.writable[i]}})
			}
			var v verdict
			b.checkOverlaps(&v, claims)
			if len(v.Overlaps) != test.overlaps || len(v.Violations) != test.violations {
				t.Errorf("%d excused overlaps %q and %d violations %q; want %d and %d",
					len(v.Overlaps), v.Overlaps, len(v.Violations), v.Violations, test.overlaps, test.violations)
			}
		})
	}
}

// After a restart, and in synchronous mode after a failover, a term that begins long
// after the last node is back is a violation. Seconds count from the fault.
func TestLateTermAfterReunionIsViolation(t *testing.T) {
	for name, test := range map[string]struct {
		kind        string
		synchronous bool
		to          string
		sessions    [members][]float64
		killed      float64 // when the trust of a killed node ends, 0 if there is none
		next        float64
		after       float64 // milliseconds
		violation   bool
	}{
		"restart, on time":                                  {"restart", false, "a", [members][]float64{{2}, {2.5}, {3}}, 0, 3.4, 400, false},
		"restart, late":                                     {"restart", false, "a", [members][]float64{{2}, {2.5}, {3}}, 0, 3.6, 600, true},
		"synchronous failover, on time":                     {"kill", true, "b", [members][]float64{{2}, {2.5}, {3}}, 0, 3.4, 400, false},
		"synchronous failover, late":                        {"kill", true, "b", [members][]float64{{2}, {2.5}, {3}}, 0, 3.6, 600, true},
		"asynchronous failover":                             {"kill", false, "b", [members][]float64{{2}, {2.5}, {3}}, 0, 5, 2000, false},
		"promotion of the same server":                      {"kill", false, "a", [members][]float64{{2}, {2.5}, {3}}, 0, 5, 2000, false},
		"a node is back later":                              {"kill", true, "b", [members][]float64{{2}, {2.5}, {6}}, 0, 5, 0, false},
		"a node was killed long before":                     {"kill", true, "b", [members][]float64{{2}, {2.5}, {3}}, -1, 3.6, 600, true},
		"a node was killed shortly before":                  {"kill", true, "b", [members][]float64{{2}, {2.5}, {3}}, 3.5, 3.6, 100, false},
		"a killed node's trust ended earlier than it could": {"kill", true, "b", [members][]float64{{2}, {2.5}, {3}}, 3.9, 3.6, 0, false},
		"a term later than a killed node's trust":           {"kill", true, "b", [members][]float64{{2}, {2.5}, {3}}, 3.2, 3.8, 600, true},
		"a node lost a session and is back":                 {"kill", true, "b", [members][]float64{{2}, {2.5}, {2.2, 4.8}}, 0, 5, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bed{mode: mode{synchronous: test.synchronous}, options: options{lease: 4 * time.Second}}
			for i, name := range []string{"a", "b", "c"} {
				b.servers = append(b.servers, &server{name: name})
				b.probes = append(b.probes, &probe{writable: []children.Interval{at(1.5, 20)}})
				n := &node{Child: &children.Child{Name: name}}
				for _, opened := range test.sessions[i] {
					n.sessions = append(n.sessions, at(opened, opened).From)
				}
				b.nodes = append(b.nodes, n)
			}
			if test.killed != 0 {
				b.former = []*node{{Child: new(children.Child), trustEnds: at(test.killed, test.killed).From}}
			}
			b.nodes[0].terms = []term{{"a", 2, at(test.next, test.next).From}}
			r := round{Kind: test.kind, At: start, From: "a", To: test.to}
			b.measureFrom(&r, b.nodes[1], 1)
			if r.AfterReunion != test.after || (r.Violation != "") != test.violation {
				t.Errorf("%v ms after the reunion, violation %q; want %v ms, a violation: %t", r.AfterReunion, r.Violation, test.after, test.violation)
			}
		})
	}
}

func TestTermsThatDoNotGrowAreFound(t *testing.T) {
	b := &bed{nodes: []*node{
		{terms: []term{{"one", 10, start}, {"one", 12, start.Add(2 * time.Second)}}},
		{terms: []term{{"two", 11, start.Add(time.Second)}, {"two", 12, start.Add(3 * time.Second)}}},
	}}
	var v verdict
	b.checkTerms(&v)
	if v.Terms != 4 || len(v.Violations) != 1 {
		t.Errorf("%d terms, violations %q; want 4 terms, and one that repeats a number", v.Terms, v.Violations)
	}
}

func TestProbeIntervalsEndWithFailure(t *testing.T) {
	p := &probe{}
	for i, written := range []bool{true, true, false, true} {
		p.note(written, start.Add(time.Duration(i)*time.Second))
	}
	want := []children.Interval{at(0, 1), at(3, 3)}
	if got := p.intervals(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}
