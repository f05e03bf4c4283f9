//go:build linux

package main

import (
	"encoding/json"
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

// table shows the vacancies by kind of failover, in Markdown. Times are in
// seconds: median and maximum.
func (o *outcome) table() string {
	var text strings.Builder
	text.WriteString("| fault | mode | rounds | leader kept | vacancy | until a server takes writes | from there to a session of every node | from there to the next term |\n")
	text.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, k := range kinds {
		for _, mode := range []string{"asynchronous", "synchronous"} {
			var vacancy, writable, all, leader []float64
			count, kept := 0, 0
			for _, r := range o.Rounds {
				if r.Kind != k.name || r.Mode != mode {
					continue
				}
				count++
				if r.Kept {
					kept++
					continue
				}
				vacancy, writable = append(vacancy, r.Vacancy), append(writable, r.Writable)
				all, leader = append(all, r.AllSessions), append(leader, r.Leader)
			}
			if count > 0 {
				fmt.Fprintf(&text, "| `%s`: %s | %s | %d | %d | %s | %s | %s | %s |\n", k.name, k.does, mode, count, kept,
					spread(vacancy), spread(writable), spread(all), spread(leader))
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
	return fmt.Sprintf("%.1f / %.1f", median/1000, all[len(all)-1]/1000)
}
