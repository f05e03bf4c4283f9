package main

import (
	"errors"
	"fmt"
	"io"
)

// limits are the bounds that -check judges for one fault. A zero bound is not judged.
type limits struct {
	fault string
	ratio float64 // of the median to that of the bare waiter
	begin float64 // of the median to that of the bare waiter that also begins the term
	p99   float64 // in ms, judged with at least roundsOfTail rounds
	max   float64 // in ms, of the slowest round
	lease float64 // in ms, after the lease, of the slowest round
	alone bool    // no two nodes may trust their terms at the same time
	roles int     // judged only in a run with so many roles
}

// bounds must hold on a quiet machine.
var bounds = []limits{
	{fault: "sigkill", ratio: 3.25, begin: 2.25, p99: 10, alone: true},
	{fault: "step-down", ratio: 6, begin: 3, p99: 10, alone: true},
	{fault: "hand-over", ratio: 6, begin: 3, p99: 10, alone: true},
	{fault: "shutdown", ratio: 6, begin: 3, p99: 10, alone: true},
	{fault: "sigkill-many-roles", max: 15, roles: 1000},
	{fault: "sigkill-many-roles", max: 60, roles: 10000},
	{fault: "sigstop", lease: 100, alone: true},
	{fault: "network-cut", lease: 100, alone: true},
}

// roundsOfTail is the number of rounds from which a p99 is more than the slowest round.
const roundsOfTail = 1000

var (
	errMissed  = errors.New("bounds were missed")
	errOverlap = errors.New("two nodes trusted terms of one role at the same time")
)

// checkOverlaps returns an error if two nodes trusted their terms at the same time in a
// fault where that must never be. Every run is judged by it.
func (r record) checkOverlaps() error {
	for _, l := range bounds {
		for _, f := range r.Faults {
			if l.alone && f.Fault == l.fault && f.Summary != nil && f.Summary.BothTrusting > 0 {
				return fmt.Errorf("%w: %s: for %.2f ms", errOverlap, f.Fault, f.Summary.BothTrusting)
			}
		}
	}
	return nil
}

// check writes one line to w for each bound that the run missed or did not measure.
func (r record) check(w io.Writer) error {
	missed := false
	miss := func(what, why string) {
		missed = true
		fmt.Fprintf(w, "missed: %s: %s\n", what, why)
	}
	for _, l := range bounds {
		if l.roles != 0 && l.roles != r.Run.Roles {
			continue
		}
		for _, why := range l.judge(r) {
			miss(l.fault, why)
		}
	}
	for _, found := range r.Costs {
		if why := found.judge(); why != "" {
			miss(fmt.Sprintf("%s/nodes=%d/roles=%d", found.Cost, found.Nodes, found.Roles), why)
		}
	}
	if missed {
		return errMissed
	}
	return nil
}

// judge returns the bounds that the run missed. It skips faults that the run did not
// select.
func (l limits) judge(r record) (missed []string) {
	for _, f := range r.Faults {
		switch {
		case f.Fault != l.fault:
		case f.NotMeasured != "":
			missed = append(missed, "not measured: "+f.NotMeasured)
		case f.Summary == nil:
			missed = append(missed, "no round was measured")
		default:
			missed = append(missed, l.judgeSummary(*f.Summary, r.Run.Lease)...)
		}
	}
	return missed
}

func (l limits) judgeSummary(s summary, lease float64) (missed []string) {
	above := func(what string, got, bound float64) {
		if got > bound {
			missed = append(missed, fmt.Sprintf("%s is %.2f, want at most %.2f", what, got, bound))
		}
	}
	switch {
	case l.ratio > 0 && s.Ratio == nil:
		missed = append(missed, "the bare waiter was not measured")
	case l.ratio > 0:
		above("the ratio of the medians", *s.Ratio, l.ratio)
	}
	switch {
	case l.begin > 0 && s.BeginRatio == nil:
		missed = append(missed, "the bare waiter that begins a term was not measured")
	case l.begin > 0:
		above("the ratio to the bare waiter that begins a term", *s.BeginRatio, l.begin)
	}
	if l.p99 > 0 && s.Rounds >= roundsOfTail {
		above("p99 in ms", s.P99, l.p99)
	}
	if l.max > 0 {
		above("the slowest round in ms", s.Max, l.max)
	}
	if l.lease > 0 {
		above("the slowest round in ms", s.Max, lease+l.lease)
	}
	if l.alone {
		above("the overlap of two terms in ms", s.BothTrusting, 0)
	}
	return missed
}

// costLimits are the bounds that -check judges for one cost. A zero bound is not judged.
type costLimits struct {
	cost       string
	roles      int     // judged only with so many roles, unless it is zero
	statements float64 // a second and node
	resident   float64 // in MB, of a process
}

var costBounds = []costLimits{
	{cost: costAtRest, statements: 0.4},
	{cost: costMemory, roles: 1, resident: 15},
	{cost: costMemory, roles: 10000, resident: 60},
}

// limits returns the bounds of a cost; without a bound, nothing is judged.
func (r costRecord) limits() costLimits {
	for _, l := range costBounds {
		if l.cost == r.Cost && (l.roles == 0 || l.roles == r.Roles) {
			return l
		}
	}
	return costLimits{}
}

// judge returns what the cost missed.
func (r costRecord) judge() string {
	l := r.limits()
	what, got, bound := "statements a second and node", r.Statements, l.statements
	if l.resident > 0 {
		what, got, bound = "the resident memory in MB", r.Resident, l.resident
	}
	switch {
	case bound == 0:
		return ""
	case r.NotMeasured != "":
		return "not measured: " + r.NotMeasured
	case got == nil:
		return "nothing was measured"
	case *got > bound:
		return fmt.Sprintf("%s is %.2f, want at most %.2f", what, *got, bound)
	}
	return ""
}

// bound is the text of the bound in the table.
func (r costRecord) bound() string {
	l := r.limits()
	switch {
	case l.statements > 0:
		return fmt.Sprintf("<= %g statements/s", l.statements)
	case l.resident > 0:
		return fmt.Sprintf("<= %g MB", l.resident)
	}
	return ""
}
