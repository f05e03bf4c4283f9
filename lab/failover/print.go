package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// mostPrinted limits the slow rounds that are printed; the JSON file has all.
const mostPrinted = 20

// print writes the histogram of a scenario and the causes of its slow rounds.
func (f faultRecord) print(w io.Writer) {
	if f.Summary == nil {
		return
	}
	line := fmt.Sprintf("\n%s: %s", f.Fault, f.Summary)
	if f.Summary.Ratio != nil {
		line += fmt.Sprintf("; %.2f times the bare waiter", *f.Summary.Ratio)
	}
	fmt.Fprintf(w, "%s\n%s", line, drawn(f.Histogram))
	f.printSlow(w)
}

func (f faultRecord) printSlow(w io.Writer) {
	if len(f.Causes) == 0 {
		return
	}
	var counts []string
	slow := 0
	for _, kind := range slices.Sorted(maps.Keys(f.Causes)) {
		counts = append(counts, fmt.Sprintf("%s %d", kind, f.Causes[kind]))
		slow += f.Causes[kind]
	}
	fmt.Fprintf(w, "  %d of %d rounds over %.1f ms: %s\n", slow, len(f.Rounds), f.SlowAbove, strings.Join(counts, ", "))
	printed := 0
	for _, r := range f.Rounds {
		if r.Cause == "" {
			continue
		}
		if printed++; printed > mostPrinted {
			fmt.Fprintf(w, "    and %d more: use -json\n", slow-mostPrinted)
			return
		}
		fmt.Fprintf(w, "    round %d, %.1f ms: %s: %s\n", r.Round, r.Took, r.Cause, r.Detail)
	}
}

func (s *summary) String() string {
	rounds := "rounds"
	if s.Rounds == 1 {
		rounds = "round"
	}
	return fmt.Sprintf("%d %s, p50 %.1f, p99 %.1f, max %.1f ms", s.Rounds, rounds, s.P50, s.P99, s.Max)
}
