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

// The lines of a page that enclose the results of the last run.
const (
	pageBegin = "<!-- made by make chaos-patroni: begin -->\n"
	pageEnd   = "<!-- made by make chaos-patroni: end -->\n"
)

// writePage puts the results into a page of the documents.
func (o *outcome) writePage(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(content), pageBegin)
	_, after, ends := strings.Cut(rest, pageEnd)
	if !found || !ends {
		return fmt.Errorf("%s lacks the lines %q and %q", path, pageBegin, pageEnd)
	}
	text := before + pageBegin + "\n" + o.summary() + "\n" + o.table() + "\n" + pageEnd + after
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a page of the documents
}

// summary says what was run and what was found.
func (o *outcome) summary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Last run: %s, %d faults with seed %d. PostgreSQL %s; Patroni with `ttl` %d s, `loop_wait` %d s, `retry_timeout` %d s;\n",
		o.Date.Format(time.DateOnly), len(o.Rounds), o.Seed, o.PostgreSQL, o.Patroni["ttl"], o.Patroni["loop_wait"], o.Patroni["retry_timeout"])
	fmt.Fprintf(&text, "`Lease` %s, `FailoverWait` %s.\n\n", o.Lease, o.FailoverWait)
	for _, mode := range []string{"asynchronous", "synchronous"} {
		if v, found := o.Verdicts[mode]; found {
			fmt.Fprintf(&text, "- %s mode: %d terms, %d acknowledged fenced writes, of which the servers lost %d; %d violations;\n  %d overlaps while two primaries acknowledged writes\n",
				strings.ToUpper(mode[:1])+mode[1:], v.Terms, v.Written, v.Lost, len(v.Violations), len(v.Overlaps))
		}
	}
	text.WriteString("\nMedian / maximum, in seconds:\n")
	return text.String()
}

// table shows the vacancies by kind of failover, in Markdown. Times are in
// seconds: median and maximum.
func (o *outcome) table() string {
	var text strings.Builder
	text.WriteString("| fault | mode | rounds | leader kept | vacancy | until a server takes writes | from there to a session of every node | from there to the next term | two servers acknowledge writes, at most |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, k := range kinds {
		for _, mode := range []string{"asynchronous", "synchronous"} {
			var vacancy, writable, all, leader []float64
			split := 0.0
			count, kept := 0, 0
			for _, r := range o.Rounds {
				if r.Kind != k.name || r.Mode != mode {
					continue
				}
				count++
				split = max(split, r.Split)
				if r.Kept {
					kept++
					continue
				}
				vacancy, writable = append(vacancy, r.Vacancy), append(writable, r.Writable)
				all, leader = append(all, r.AllSessions), append(leader, r.Leader)
			}
			if count > 0 {
				fmt.Fprintf(&text, "| `%s`: %s | %s | %d | %d | %s | %s | %s | %s | %s |\n", k.name, k.does, mode, count, kept,
					spread(vacancy), spread(writable), spread(all), spread(leader), fmt.Sprintf("%.1f", split/1000))
			}
		}
	}
	return text.String()
}

// spread is the median and the maximum, in seconds.
func spread(all []float64) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	median := all[int(math.Ceil(float64(len(all))/2))-1]
	return fmt.Sprintf("%.1f / %.1f", max(0, median/1000), max(0, all[len(all)-1]/1000)) // the probes are a few milliseconds late
}
