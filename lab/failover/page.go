package main

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

const pageHeader = "| fault | PostgreSQL | rounds | p50 | p99 | most | bare lock, p50 | two nodes trusted their terms | last run |\n|---|---|---|---|---|---|---|---|---|"

// writePage puts a line for each fault into the table of a page.
func (r record) writePage(path string) error {
	return docpage.Update(path, "bench-failover", r.withLines)
}

// withLines returns the table with a line for each fault that was measured, in place of the
// one of its last run.
func (r record) withLines(table string) string {
	for _, f := range r.Faults {
		if f.Summary == nil {
			continue
		}
		bare := "–"
		if f.Summary.BareP50 != nil {
			bare = fmt.Sprintf("%.1f ms", *f.Summary.BareP50)
		}
		name := "`" + f.Fault + "`"
		line := fmt.Sprintf("| %s | %s | %d | %.1f ms | %.1f ms | %.1f ms | %s | %g ms | %s |", name, r.Run.PostgreSQL, f.Summary.Rounds,
			f.Summary.P50, f.Summary.P99, f.Summary.Max, bare, f.Summary.BothTrusting, r.Run.Started.Format(time.DateOnly))
		table = docpage.SetLine(table, pageHeader, line, docpage.HasFirst(name))
	}
	return table
}
