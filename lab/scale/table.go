package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// row is a figure beside its limit, which was measured in the same run.
type row struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit"`
	Is     float64 `json:"is"`
	Limit  string  `json:"limit"` // what Beside is
	Beside float64 `json:"beside"`
	Ratio  float64 `json:"ratio"` // by how much Tenure is worse than its limit, 0 if one of them is 0
}

// costs returns the row of a figure that should be low.
func costs(what, unit string, is float64, limit string, beside float64) row {
	return row{what, unit, is, limit, beside, quotient(is, beside)}
}

// yields returns the row of a figure that should be high.
func yields(what, unit string, is float64, limit string, beside float64) row {
	return row{what, unit, is, limit, beside, quotient(beside, is)}
}

// quotient is 0 if there is none: JSON has no infinity.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// table returns all figures of the run.
func (r record) table() (all []row) {
	all = append(all, r.Rows...)
	for _, c := range r.Crowds {
		who := fmt.Sprintf("%d nodes", c.Nodes)
		const pairs = "as many pairs of connections"
		all = append(all,
			costs(who+" that open together", "s", c.Joined, pairs, c.Bare.Joined),
			costs(who+" that open together: server's processor of each", "ms", c.JoinCPU, pairs, c.Bare.JoinCPU),
			costs(who+" at rest: server's processor of each", "ms/s", c.Session+c.Watch, pairs+" with an update every 3.3 s", c.Bare.Session+c.Bare.Watch))
		if c.Returned > 0 {
			all = append(all, costs(who+" after a restart of the server", "s", c.Returned, pairs+" that open", c.Bare.Joined))
		}
	}
	for _, d := range r.Doorbell {
		who := fmt.Sprintf("%s, %d writers", d.Commits, d.Writers)
		all = append(all,
			yields(who, "commits/s", median(d.Rates), "without notifications", median(d.Beside)),
			yields(who+", beside bare commits", "commits/s", median(d.Rates), "without a reader", median(d.Bare)))
	}
	for _, l := range r.Latency {
		all = append(all,
			costs("commit to handler, "+l.Load+": p50", "ms", l.Is.P50, "a reader that polls without a pause", l.Bare.P50),
			costs("commit to handler, "+l.Load+": p99", "ms", l.Is.P99, "a reader that polls without a pause", l.Bare.P99))
	}
	return all
}

func printTable(w io.Writer, all []row) {
	fmt.Fprintf(w, "\n%-72s %10s %10s %7s  %-10s %s\n", "figure", "Tenure", "limit", "ratio", "unit", "the limit is")
	for _, r := range all {
		fmt.Fprintf(w, "%-72s %10.2f %10.2f %7.2f  %-10s %s\n", r.What, r.Is, r.Beside, r.Ratio, r.Unit, r.Limit)
	}
}

// worse is by how much a ratio may exceed the one that is kept.
const worse = 4.0 / 3

var errWorse = errors.New("ratios got worse by more than a third")

// judge compares the ratios of a run with those that a file keeps. Each of these must have
// been measured. ratios.json keeps those that other load on the machine hardly changes.
func judge(w io.Writer, all []row, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	kept := map[string]float64{}
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	found := map[string]float64{}
	for _, r := range all {
		found[r.What] = r.Ratio
	}
	failed := false
	for _, what := range slices.Sorted(maps.Keys(kept)) {
		ratio, measured := found[what]
		if !(measured && ratio > 0 && ratio <= worse*kept[what]) {
			failed = true
			fmt.Fprintf(w, "worse: %s: the ratio is %.2f, want at most 4/3 of %.2f\n", what, ratio, kept[what])
		}
	}
	if failed {
		return errWorse
	}
	return nil
}

// keep writes the ratios that later runs are judged by.
func keep(all []row, file string) error {
	kept := map[string]float64{}
	for _, r := range all {
		kept[r.What] = float64(int(100*r.Ratio)) / 100
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
