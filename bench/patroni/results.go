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

// publish prints the results, and writes them to a file and a page if named.
func (o *outcome) publish(path, page string) error {
	fmt.Printf("\n%s\n%s", o.summary(), o.table())
	var failed error
	if path != "" {
		failed = o.write(path)
	}
	if page != "" {
		failed = errors.Join(failed, o.writePage(page))
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

// writePage puts the results into a page of the documents.
func (o *outcome) writePage(path string) error {
	return docpage.Update(path, "chaos-patroni", func(string) string { return o.summary() + "\n" + o.table() })
}

// summary describes the run and its findings.
func (o *outcome) summary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Last run: %s, %d faults with seed %d. PostgreSQL %s; Patroni with `ttl` %d s, `loop_wait` %d s, `retry_timeout` %d s;\n",
		o.Date.Format(time.DateOnly), len(o.Rounds), o.Seed, o.PostgreSQL, o.Patroni["ttl"], o.Patroni["loop_wait"], o.Patroni["retry_timeout"])
	fmt.Fprintf(&text, "`Lease` %s, `FailoverWait` %s.\n\n", o.Lease, o.FailoverWait)
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
			fmt.Fprintf(&text, "\n%s:\n\n%s\n|---|---|---|---|---|---|---|---|---|\n%s", sentence(m.name),
				"| fault | rounds | leader kept | vacancy | until a server takes writes | from there to a session of every node | from there to the next term | two servers acknowledge writes | two nodes trust their terms |", rows)
		}
	}
	return text.String()
}

// row sums up the rounds with a kind of fault in a mode. Times are in seconds: median
// and maximum, or the maximum alone for what two servers or two nodes do.
func (o *outcome) row(m mode, k kind) string {
	var vacancy, writable, all, leader []float64
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
		if r.Writable > 0 { // or the server took writes all the time
			writable, all, leader = append(writable, r.Writable), append(all, r.AllSessions), append(leader, r.Leader)
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %s | %s | %s | %.1f | %.1f |\n", "`"+k.name+"`", count, kept,
		spread(vacancy), spread(writable), spread(all), spread(leader), split/1000, bothTrust/1000)
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
