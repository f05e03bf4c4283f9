package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestRunMeasuresEachKindBesideItsLimit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "scale.json")
	var printed bytes.Buffer
	o := options{only: "commits,latency", writers: []int{2}, rounds: 1, length: 100 * time.Millisecond, json: file}
	if err := o.run(t.Context(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Doorbell) != 3 || len(r.Latency) != len(loads) {
		t.Fatalf("the record has %d kinds of commits and %d loads; want 3 and %d", len(r.Doorbell), len(r.Latency), len(loads))
	}
	for _, rate := range r.Doorbell {
		if len(rate.Rates) != 1 || len(rate.Beside) != 1 || len(rate.Bare) != 1 || rate.Ratio <= 0 {
			t.Errorf("%+v; want a rate of each", rate)
		}
	}
	for _, l := range r.Latency {
		if l.Is.Events == 0 || l.Bare.Events == 0 || l.Is.Max <= 0 {
			t.Errorf("%+v; want events of both readers", l)
		}
	}
}

func TestRunMeasuresCrowds(t *testing.T) {
	t.Parallel()
	for _, members := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "scale.json")
		var printed bytes.Buffer
		o := options{only: "crowds", nodes: []int{3}, lockWaits: "on", members: members, settle: time.Second, rest: 4 * time.Second, joins: 1, json: file}
		if err := o.run(t.Context(), &printed); err != nil {
			t.Fatalf("%v\n%s", err, printed.String())
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Crowds) != 1 {
			t.Fatalf("the record has %d crowds, want 1", len(r.Crowds))
		}
		// Its figures are differences of two windows, which noise can make negative.
		if r.Crowds[0].Join == nil || !strings.Contains(printed.String(), "a join costs the other nodes together") {
			t.Errorf("no cost of a join in\n%s", printed.String())
		}
		if b := r.Crowds[0].Bare; b == nil || b.Joined <= 0 || runtime.GOOS == "linux" && (b.JoinCPU <= 0 || b.Session <= 0 || b.Rest.Memory <= 0) {
			t.Errorf("%+v; want all figures of bare pairs", b)
		}
		if c := r.Crowds[0]; c.Joined <= 0 || c.Returned <= 0 || runtime.GOOS == "linux" && (c.JoinCPU <= 0 || c.ReturnCPU <= 0 || c.Session <= 0 || c.Watch <= 0 || c.Rest.WAL <= 0 || c.Rest.Commands <= 0 || c.Rest.Memory <= 0) {
			t.Errorf("%+v; want all figures", c)
		}
	}
}

func TestParseRejectsNoWriters(t *testing.T) {
	for _, args := range [][]string{{"-writers=0"}, {"-writers=many"}, {"-writers="}, {"-nodes=0"}, {"-only=commits,naps"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

func TestRunMeasuresWrites(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	if err := (options{only: "writes"}).run(t.Context(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	for _, what := range []string{"term", "run of a schedule", "event, appended and handled"} {
		var wal, table float64
		for line := range strings.Lines(printed.String()) {
			if rest, found := strings.CutPrefix(line, what+" "); found {
				_, _ = fmt.Sscan(rest, &wal, &table) // zeros fail the test
			}
		}
		if wal < 100 || wal > 5000 || table < 50 || table > 1000 {
			t.Errorf("a %s writes %.0f bytes of WAL and %.0f of a table; want about 1 kB and some hundred", what, wal, table)
		}
	}
}

func TestRunMeasuresOpeningAndProcessors(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	file := filepath.Join(t.TempDir(), "scale.json")
	o := options{only: "opening,processors", settle: time.Second, rest: 5 * time.Second, json: file}
	if err := o.run(t.Context(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Table) != 2 {
		t.Fatalf("the table is %+v; want 2 rows", r.Table)
	}
	for _, row := range r.Table {
		if row.Is <= 0 || row.Beside <= 0 || row.Ratio != row.Is/row.Beside || !strings.Contains(printed.String(), row.What) {
			t.Errorf("%+v; want a figure beside its limit, which is printed", row)
		}
	}
}

// A kept ratio that a run does not measure, or that is worse by more than a third, fails it.
func TestRatiosAreJudged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ratios.json")
	if err := keep([]row{costs("slow", "ms", 30, "bare", 10), yields("rate", "1/s", 50, "bare", 100)}, file); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		slow, rate row
		worse      string
	}{
		{"the same", costs("slow", "ms", 30, "bare", 10), yields("rate", "1/s", 50, "bare", 100), ""},
		{"by less than a third", costs("slow", "ms", 39, "bare", 10), yields("rate", "1/s", 40, "bare", 100), ""},
		{"a cost by more", costs("slow", "ms", 41, "bare", 10), yields("rate", "1/s", 50, "bare", 100), "worse: slow"},
		{"a rate by more", costs("slow", "ms", 30, "bare", 10), yields("rate", "1/s", 37, "bare", 100), "worse: rate"},
		{"one is missing", costs("other", "ms", 30, "bare", 10), yields("rate", "1/s", 50, "bare", 100), "worse: slow"},
		{"no limit was measured", costs("slow", "ms", 0, "bare", 0), yields("rate", "1/s", 50, "bare", 100), "worse: slow"},
	} {
		var printed bytes.Buffer
		err := judge(&printed, []row{c.slow, c.rate}, file)
		if !strings.HasPrefix(printed.String(), c.worse) || (c.worse == "") != (printed.Len() == 0) || errors.Is(err, errWorse) != (c.worse != "") {
			t.Errorf("%s: printed %q, error %v; want %q", c.name, printed.String(), err, c.worse)
		}
	}
}

func TestFiguresOfOtherProgramsAreRead(t *testing.T) {
	metrics := readMetrics([]byte("BenchmarkOpening/bare_pair-2 \t 30\t 31.2 server-ms/op\nBenchmarkCluster/60 20 1.5 s-to-join 4 bare-ms-to-all\n" +
		"    cluster_test.go:387: while no process started, deaths were seen 9 times: p50 1ms, p90 2ms, p99 433.1ms, last 500ms\n"))
	for name, want := range map[string]float64{"Opening/bare_pair server-ms/op": 31.2, "Cluster/60 bare-ms-to-all": 4, "storm p99": 433.1} {
		if metrics[name] != want {
			t.Errorf("%s is %v, want %v", name, metrics[name], want)
		}
	}
	rows, err := failoverRows([]byte(`{"faults": [{"fault": "sigkill", "summary": {"p50_ms": 8, "bare_p50_ms": 4, "bare_begin_p50_ms": 5}}]}`))
	if err != nil || len(rows) != 2 || rows[0].Ratio != 2 || rows[1].Ratio != 1.6 {
		t.Errorf("got %+v, %v; want the ratios 2 and 1.6", rows, err)
	}
}
