package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// demoSummary is the summary of the demonstration as printed.
type demoSummary struct {
	Time           console.Timestamp `json:"time"`
	Event          string            `json:"event"` // summary
	Failovers      int               `json:"failovers"`
	MedianSeconds  *float64          `json:"median_seconds"` // null if there were none, as the next two
	FastestSeconds *float64          `json:"fastest_seconds"`
	SlowestSeconds *float64          `json:"slowest_seconds"`

	median, fastest, slowest time.Duration
}

func newSummary(failovers []failover) demoSummary {
	s := demoSummary{Time: console.Timestamp(time.Now()), Event: "summary", Failovers: len(failovers)}
	if len(failovers) == 0 {
		return s
	}
	took := make([]time.Duration, len(failovers))
	for i, f := range failovers {
		took[i] = f.took
	}
	slices.Sort(took)
	middle := len(took) / 2
	s.median = took[middle]
	if len(took)%2 == 0 {
		s.median = (took[middle-1] + took[middle]) / 2
	}
	s.fastest, s.slowest = took[0], took[len(took)-1]
	s.MedianSeconds, s.FastestSeconds, s.SlowestSeconds = inSeconds(s.median), inSeconds(s.fastest), inSeconds(s.slowest)
	return s
}

func (s demoSummary) text() string {
	switch s.Failovers {
	case 0:
		return "no failovers"
	case 1:
		return "1 failover: " + milliseconds(s.median)
	default:
		return fmt.Sprintf("%d failovers: median %s, fastest %s, slowest %s",
			s.Failovers, milliseconds(s.median), milliseconds(s.fastest), milliseconds(s.slowest))
	}
}

func inSeconds(d time.Duration) *float64 {
	seconds := d.Seconds()
	return &seconds
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
