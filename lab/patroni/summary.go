//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

const summaryHeader = "| mode | PostgreSQL | failover manager | faults | acknowledged fenced writes | violations | last run |\n|---|---|---|---|---|---|---|"

// writeSummary puts a line for each mode that was judged into the table of a page.
func (o *outcome) writeSummary(path string) error {
	return docpage.Update(path, "chaos-patroni", o.withLines)
}

// withLines returns the table with the lines of the run, each in place of the last
// one of its mode. A mode whose run ended before its checks has no line: nothing can
// be said of it.
func (o *outcome) withLines(table string) string {
	for _, m := range o.modes() {
		v, judged := o.Verdicts[m.name]
		if !judged {
			continue
		}
		count, ways := o.faults(m)
		line := fmt.Sprintf("| %s | %s | %s | %d of %d kinds | %d | %s | %s |",
			m.name, o.PostgreSQL, o.Versions, count, ways, v.Written, violations(len(v.Violations)), o.Date.Format(time.DateOnly))
		table = docpage.SetLine(table, summaryHeader, line, docpage.HasFirst(m.name))
	}
	return table
}

// faults counts the faults in a mode, and their kinds.
func (o *outcome) faults(m mode) (count, ways int) {
	seen := map[string]bool{}
	for _, r := range o.Rounds {
		if r.Mode == m.name {
			count, seen[r.Kind] = count+1, true
		}
	}
	return count, len(seen)
}

// violations formats a count in bold unless it is 0.
func violations(n int) string {
	if n > 0 {
		return fmt.Sprintf("**%d**", n)
	}
	return "0"
}

// versions names the installed versions of Patroni and etcd.
func versions() string {
	var all []string
	for name, title := range map[string]string{"patroni": "Patroni", "etcd": "etcd"} {
		text, _ := exec.Command(name, "--version").Output() // without a version, the name remains
		all = append(all, strings.TrimSpace(title+" "+regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).FindString(string(text))))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
