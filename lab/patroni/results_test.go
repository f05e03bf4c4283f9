//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The page shows the longest times of each kind of fault and mode, and what the
// checks found in the modes that ended.
func TestPageShowsLongestTimes(t *testing.T) {
	asynchronous, synchronous := modes[0].name, modes[1].name
	o := &outcome{
		Date: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), Seed: 12, PostgreSQL: "15.18", Lease: "4s", FailoverWait: "0s",
		Patroni: map[string]int{"ttl": 6, "loop_wait": 1, "retry_timeout": 2},
		Rounds: []round{
			{Mode: asynchronous, Kind: "kill", Vacancy: 6200, Writable: 1900, Leader: 4400},
			{Mode: asynchronous, Kind: "kill", Vacancy: 5400, Writable: 1900, Leader: 4700},
			{Mode: asynchronous, Kind: "split", Vacancy: -1200, Writable: 9100, Leader: 4200, Split: 5400, BothTrust: 1200},
			{Mode: synchronous, Kind: "cut-standbys", Kept: true},
			{Mode: synchronous, Kind: "proxy-kill", Vacancy: 6500},
		},
		Verdicts: map[string]verdict{asynchronous: {Terms: 17, Written: 5311, Lost: 1214}},
	}
	path := filepath.Join(t.TempDir(), "page.md")
	const begin, end = "<!-- written by make chaos-patroni -->\n", "<!-- end -->\n"
	if err := os.WriteFile(path, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.writePage(path); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Last run: 2026-11-23, 5 faults with seed 12.",
		"| asynchronous | 17 | 5311 | 1214 | 0 | 5.4 s | 1.2 s |\n",
		"| synchronous | – | – | – | – | 0.0 s | 0.0 s |\n",
		"| fault | what happens | asynchronous | synchronous |\n|---|---|---|---|\n",
		"| `kill` | SIGKILL of the primary | 6.2 (4.7) | |\n",
		" | 0.0 (4.2) | |\n",
		" | kept |\n",
		" | 6.5 |\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "old") {
		t.Errorf("the page has the text of the last run:\n%s", page)
	}
}

// The printed table shows how long after the last session the next term began.
func TestTableShowsTimeAfterReunion(t *testing.T) {
	o := &outcome{Rounds: []round{{Mode: modes[1].name, Kind: "kill", Vacancy: 2700, Writable: 1900, AllSessions: 200, Leader: 600, AfterReunion: 400}}}
	const want = "| `kill` | 1 | 0 | 2.7 / 2.7 | 1.9 / 1.9 | 0.2 / 0.2 | 0.6 / 0.6 | 0.4 / 0.4 | 0.0 | 0.0 |\n"
	if table := o.table(); !strings.Contains(table, want) {
		t.Errorf("the table lacks %q:\n%s", want, table)
	}
}

// The summary has a line for each mode, with the violations that were found. A mode
// that was not judged keeps the line of its last run.
func TestSummaryHasLineOfEachJudgedMode(t *testing.T) {
	asynchronous, synchronous := modes[0].name, modes[1].name
	o := &outcome{
		Date: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), PostgreSQL: "15.18", Versions: "Patroni 3.0.2, etcd 3.4.23",
		Rounds:   []round{{Mode: asynchronous, Kind: "kill"}, {Mode: asynchronous, Kind: "kill"}, {Mode: asynchronous, Kind: "restart"}, {Mode: synchronous, Kind: "kill"}},
		Verdicts: map[string]verdict{asynchronous: {Written: 5311, Violations: []string{"late"}}},
	}
	old := summaryHeader + "\n| asynchronous | 14.1 | old | 1 of 1 kinds | 1 | 0 | 2026-01-01 |\n| synchronous | 14.1 | old | 1 of 1 kinds | 1 | 0 | 2026-01-01 |"
	const want = summaryHeader + `
| asynchronous | 15.18 | Patroni 3.0.2, etcd 3.4.23 | 3 of 2 kinds | 5311 | **1** | 2026-11-23 |
| synchronous | 14.1 | old | 1 of 1 kinds | 1 | 0 | 2026-01-01 |`
	if got := o.withLines(old); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := o.withLines(""); strings.Contains(got, "| synchronous |") {
		t.Errorf("a mode that was not judged has a line:\n%s", got)
	}
}
