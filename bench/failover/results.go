package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// results are the rounds of one scenario.
type results struct {
	scenario scenario
	lease    time.Duration
	took     []time.Duration
	bare     []time.Duration
	recorded []time.Duration
	notes    []string
	overlap  time.Duration
}

func (r results) String() string {
	bare, ratio, recorded, recordedRatio := "-", "-", "-", "-"
	if len(r.bare) > 0 {
		limit := percentile(r.bare, 0.5)
		bare = milliseconds(limit)
		ratio = fmt.Sprintf("%.2f", float64(percentile(r.took, 0.5))/float64(limit))
		limit = percentile(r.recorded, 0.5)
		recorded = milliseconds(limit)
		recordedRatio = fmt.Sprintf("%.2f", float64(percentile(r.took, 0.5))/float64(limit))
	}
	bound := r.scenario.bound
	if r.scenario.slow {
		bound = strings.ReplaceAll(bound, "lease", milliseconds(r.lease))
	}
	line := fmt.Sprintf("%-22s %6d %9s %9s %9s %9s %6s %12s %6s %14s  %s", r.scenario.name, len(r.took),
		milliseconds(percentile(r.took, 0.5)), milliseconds(percentile(r.took, 0.99)), milliseconds(slices.Max(r.took)),
		bare, ratio, recorded, recordedRatio, milliseconds(r.overlap), bound)
	for _, note := range slices.Compact(slices.Sorted(slices.Values(r.notes))) {
		if note == "" {
			continue
		}
		var times []time.Duration
		for i, n := range r.notes {
			if n == note {
				times = append(times, r.took[i])
			}
		}
		line += fmt.Sprintf("\n%-22s %6d %9s %9s %9s", "  "+note, len(times), milliseconds(percentile(times, 0.5)), "", milliseconds(slices.Max(times)))
	}
	return line
}

// percentile is the nearest rank.
func percentile(all []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}
