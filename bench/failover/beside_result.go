package main

import (
	"fmt"
	"time"
)

// besideResult are the rounds of another system in one scenario.
type besideResult struct {
	command string
	took    []time.Duration
	overlap time.Duration
	failed  error
}

func (r besideResult) record() besideRecord {
	found := besideRecord{Command: r.command, Summary: summarize(r.took, r.overlap), Histogram: histogram(r.took, nil)}
	if r.failed != nil {
		found.Failed = r.failed.Error()
	}
	for _, d := range r.took {
		found.Took = append(found.Took, inMilliseconds(d))
	}
	return found
}

// String is a row of the table.
func (r besideResult) String() string {
	line := fmt.Sprintf("%-22.22s %6d", "  "+r.command, len(r.took))
	if s := summarize(r.took, r.overlap); s != nil {
		line += fmt.Sprintf(" %9.1f %9.1f %9.1f %9s %6s %12s %6s %14.1f", s.P50, s.P99, s.Max, "-", "-", "-", "-", s.BothTrusting)
	}
	if r.failed != nil {
		line += "  failed: " + r.failed.Error()
	}
	return line
}
