//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

// outcome is a whole run.
type outcome struct {
	Date         time.Time          `json:"date"`
	Seed         uint64             `json:"seed"`
	PostgreSQL   string             `json:"postgresql"`
	Versions     string             `json:"versions"` // of Patroni and etcd
	Lease        string             `json:"lease"`
	FailoverWait string             `json:"failover_wait"`
	Patroni      map[string]int     `json:"patroni"`
	Namespaces   bool               `json:"namespaces"`
	Rounds       []round            `json:"rounds"`
	Verdicts     map[string]verdict `json:"verdicts"`
}

func (o *outcome) write(path string) error {
	content, err := json.MarshalIndent(o, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644) //nolint:gosec // it is a report
}

// publish prints the results, and writes them to a file and to pages if named.
func (o *outcome) publish(path, page, summary string) error {
	fmt.Printf("\n%s\n%s", o.summary(), o.table())
	var failed error
	if path != "" {
		failed = o.write(path)
	}
	if page != "" {
		failed = errors.Join(failed, o.writePage(page))
	}
	if summary != "" {
		failed = errors.Join(failed, o.writeSummary(summary))
	}
	return failed
}

// read loads the results of an earlier run.
func read(path string) (*outcome, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o := new(outcome)
	err = json.Unmarshal(content, o)
	return o, err
}

// writePage puts the longest times of the results into a page of the documents.
func (o *outcome) writePage(path string) error {
	return docpage.Update(path, "chaos-patroni", func(string) string { return o.settings() + "\n" + o.findings() + "\n" + o.longest() })
}

// settings describes the run.
func (o *outcome) settings() string {
	return fmt.Sprintf("Last run: %s, %d faults with seed %d. PostgreSQL %s; Patroni with `ttl` %d s, `loop_wait` %d s, `retry_timeout` %d s;\n`Lease` %s, `FailoverWait` %s.\n",
		o.Date.Format(time.DateOnly), len(o.Rounds), o.Seed, o.PostgreSQL, o.Patroni["ttl"], o.Patroni["loop_wait"], o.Patroni["retry_timeout"], o.Lease, o.FailoverWait)
}

// findings is a table, in Markdown, of what was found in each mode. Times are in
// seconds, of the longest case.
func (o *outcome) findings() string {
	var text strings.Builder
	text.WriteString("| mode | terms | acknowledged fenced writes | of these lost | violations | two primaries acknowledge writes | two nodes trust their terms |\n|---|---|---|---|---|---|---|\n")
	for _, m := range o.modes() {
		v, judged := o.Verdicts[m.name]
		var split, bothTrust float64
		for _, r := range o.Rounds {
			if r.Mode == m.name {
				split, bothTrust = max(split, r.Split), max(bothTrust, r.BothTrust)
			}
		}
		counts := "– | – | – | –" // the run was interrupted before its checks
		if judged {
			counts = fmt.Sprintf("%d | %d | %d | %d", v.Terms, v.Written, v.Lost, len(v.Violations))
		}
		fmt.Fprintf(&text, "| %s | %s | %.1f s | %.1f s |\n", m.name, counts, split/1000, bothTrust/1000)
	}
	return text.String()
}

// longest is a table, in Markdown, of the longest vacancies by kind of fault and
// mode. In parentheses is how long the wait on the new primary took.
func (o *outcome) longest() string {
	inModes := o.modes()
	var text strings.Builder
	text.WriteString("| fault | what happens |")
	for _, m := range inModes {
		text.WriteString(" " + m.name + " |")
	}
	text.WriteString("\n" + strings.Repeat("|---", 2+len(inModes)) + "|\n")
	for _, k := range kinds {
		if !slices.ContainsFunc(o.Rounds, func(r round) bool { return r.Kind == k.name }) {
			continue
		}
		fmt.Fprintf(&text, "| `%s` | %s |", k.name, k.does)
		for _, m := range inModes {
			text.WriteString(o.cell(m, k) + " |")
		}
		text.WriteString("\n")
	}
	return text.String()
}

// cell sums up the rounds with a kind of fault in a mode.
func (o *outcome) cell(m mode, k kind) string {
	var vacancy, leader float64
	made, lost, moved := false, false, false
	for _, r := range o.Rounds {
		if r.Kind != k.name || r.Mode != m.name {
			continue
		}
		made = true
		if r.Kept {
			continue
		}
		lost, vacancy = true, max(vacancy, r.Vacancy)
		if r.Writable > 0 { // or the server took writes all the time
			moved, leader = true, max(leader, r.Leader)
		}
	}
	switch {
	case !made:
		return ""
	case !lost:
		return " kept"
	case !moved:
		return fmt.Sprintf(" %.1f", vacancy/1000)
	default:
		return fmt.Sprintf(" %.1f (%.1f)", vacancy/1000, leader/1000)
	}
}

// modes are those of the run.
func (o *outcome) modes() []mode {
	return slices.DeleteFunc(slices.Clone(modes), func(m mode) bool {
		return !slices.ContainsFunc(o.Rounds, func(r round) bool { return r.Mode == m.name })
	})
}

// summary describes the run and its findings.
func (o *outcome) summary() string {
	var text strings.Builder
	text.WriteString(o.settings() + "\n")
	for _, m := range modes {
		if v, found := o.Verdicts[m.name]; found {
			fmt.Fprintf(&text, "- %s: %d terms, %d acknowledged fenced writes, of which the servers lost %d; %d violations;\n  overlaps while two primaries acknowledged writes: %d\n",
				sentence(m.name), v.Terms, v.Written, v.Lost, len(v.Violations), len(v.Overlaps))
		}
	}
	text.WriteString("\nTimes in the tables are in seconds: median / maximum, or the maximum alone. The faults:\n")
	return text.String()
}

// table shows the faults, and the vacancies by kind of fault in a table for each
// mode, in Markdown.
func (o *outcome) table() string {
	var text strings.Builder
	for _, k := range kinds {
		if slices.ContainsFunc(o.Rounds, func(r round) bool { return r.Kind == k.name }) {
			fmt.Fprintf(&text, "- `%s`: %s\n", k.name, k.does)
		}
	}
	for _, m := range modes {
		rows := ""
		for _, k := range kinds {
			rows += o.row(m, k)
		}
		if rows != "" {
			fmt.Fprintf(&text, "\n%s:\n\n%s\n|---|---|---|---|---|---|---|---|---|---|\n%s", sentence(m.name),
				"| fault | rounds | leader kept | vacancy | until a server takes writes | from there to a session of every node | from there to the next term | from the last session to the next term | two servers acknowledge writes | two nodes trust their terms |", rows)
		}
	}
	return text.String()
}

// row sums up the rounds with a kind of fault in a mode. Times are in seconds: median
// and maximum, or the maximum alone for what two servers or two nodes do.
func (o *outcome) row(m mode, k kind) string {
	var vacancy, writable, all, leader, reunion []float64
	var split, bothTrust float64
	count, kept := 0, 0
	for _, r := range o.Rounds {
		if r.Kind != k.name || r.Mode != m.name {
			continue
		}
		count++
		split, bothTrust = max(split, r.Split), max(bothTrust, r.BothTrust)
		if r.Kept {
			kept++
			continue
		}
		vacancy = append(vacancy, r.Vacancy)
		if r.AfterReunion > 0 {
			reunion = append(reunion, r.AfterReunion)
		}
		if r.Writable > 0 { // or the server took writes all the time
			writable, all, leader = append(writable, r.Writable), append(all, r.AllSessions), append(leader, r.Leader)
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %s | %s | %s | %s | %.1f | %.1f |\n", "`"+k.name+"`", count, kept,
		spread(vacancy), spread(writable), spread(all), spread(leader), spread(reunion), split/1000, bothTrust/1000)
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// spread is the median and the maximum, in seconds.
func spread(all []float64) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	median := all[int(math.Ceil(float64(len(all))/2))-1]
	return fmt.Sprintf("%.1f / %.1f", max(0, median/1000), max(0, all[len(all)-1]/1000)) // the probes are a few milliseconds late
}
