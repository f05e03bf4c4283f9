package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// failovers runs make bench-failover's program and returns its medians beside those of the
// bare waiter, and of the one that also begins the term.
func (o options) failovers(ctx context.Context) ([]row, error) {
	directory, err := os.MkdirTemp("", "tenure-scale-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }() // a temporary directory
	file := filepath.Join(directory, "failover.json")
	args := []string{"-only=sigkill,step-down,shutdown", fmt.Sprint("-rounds=", o.failoverRounds), "-json=" + file}
	if o.version != "" {
		args = append(args, "-pg="+o.version)
	}
	if output, err := exec.CommandContext(ctx, o.failover, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", o.failover, err, output)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return failoverRows(text)
}

func failoverRows(text []byte) (all []row, err error) {
	var found struct {
		Faults []struct {
			Fault   string
			Summary *struct {
				P50   float64 `json:"p50_ms"`
				Bare  float64 `json:"bare_p50_ms"`
				Begin float64 `json:"bare_begin_p50_ms"`
			}
		}
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	for _, f := range found.Faults {
		if f.Summary == nil {
			return nil, fmt.Errorf("%s was not measured", f.Fault)
		}
		what := f.Fault + " to the next leader, p50"
		all = append(all,
			costs(what, "ms", f.Summary.P50, "a bare waiter", f.Summary.Bare),
			costs(what+", beside a waiter that begins a term", "ms", f.Summary.P50, "a bare waiter that begins a term", f.Summary.Begin))
	}
	return all, nil
}

// measurement is a figure that a test or a benchmark prints, beside one that the same or
// another one prints.
type measurement struct {
	what, unit string
	of         suite
	is         string // as readMetrics names it
	limit      string // what is beside it
	beside     suite
	besides    string
}

// suite is what go test runs.
type suite struct {
	directory string
	args      string // of go test
	long      bool   // it takes minutes
}

var (
	openings   = suite{"./postgres", "-run=^$ -bench=^BenchmarkOpening$ -benchtime=30x", false}
	heartbeats = suite{"./postgres", "-run=^$ -bench=^BenchmarkHeartbeat$ -benchtime=500x", false}
	spreads    = suite{"./internal/acceptance", "-run=^$ -bench=^BenchmarkSharedRoles$/^(1|10000)$ -benchtime=5x", true}
	deaths     = suite{"./internal/acceptance", "-run=^$ -bench=^BenchmarkCluster$/^60$ -benchtime=20x", true}
	storm      = suite{"./internal/acceptance", "-run=^TestMembersOfLargeClusterAgree$ -v", true}
	bareStorm  = suite{"./internal/acceptance", "-run=^$ -bench=^BenchmarkBareStorm$ -benchtime=60x", true}
)

var measurements = []measurement{
	{"opening: server's processor", "ms", openings, "Opening/session server-ms/op", "a pair of connections", openings, "Opening/bare_pair server-ms/op"},
	{"heartbeat: server's processor", "µs", heartbeats, "Heartbeat/heartbeat server-us/op", "an update of the row", heartbeats, "Heartbeat/bare_update server-us/op"},
	{"a death among 60 members: until all know it, p99", "ms", deaths, "Cluster/60 p99-ms-to-all", "a read by all, p50", deaths, "Cluster/60 bare-ms-to-all"},
	{"deaths in a storm of 58 members, p99", "ms", storm, "storm p99", "a storm of bare pairs", bareStorm, "BareStorm ms-p99-quiet"},
	{"10,000 roles of a Spread: takeover", "ms", spreads, "SharedRoles/10000 failover-ms", "one role", spreads, "SharedRoles/1 failover-ms"},
	{"10,000 roles of a Spread at rest, 3 members", "statements/s", spreads, "SharedRoles/10000 statements/s", "one role", spreads, "SharedRoles/1 statements/s"},
}

// measured runs the suites, each one once.
func (o options) measured(ctx context.Context) (all []row, err error) {
	metrics := map[suite]map[string]float64{}
	run := func(s suite, name string) (float64, error) {
		if metrics[s] == nil {
			args := append([]string{"test", s.directory, "-count=1", "-timeout=0", "-vet=off"}, strings.Fields(s.args)...)
			output, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
			}
			metrics[s] = readMetrics(output)
		}
		value, found := metrics[s][name]
		if !found {
			return 0, fmt.Errorf("go test %s %s does not print %q", s.directory, s.args, name)
		}
		return value, nil
	}
	for _, m := range measurements {
		if o.short && (m.of.long || m.beside.long) {
			continue
		}
		is, err := run(m.of, m.is)
		if err != nil {
			return all, err
		}
		beside, err := run(m.beside, m.besides)
		if err != nil {
			return all, err
		}
		all = append(all, costs(m.what, m.unit, is, m.limit, beside))
	}
	return all, nil
}

// benchmarkLine is a line of go test: the name, the iterations, the metrics. stormLine is
// that of a test.
var (
	benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	stormLine     = regexp.MustCompile(`while no process started, deaths were seen .* p99 (\S+),`)
)

// readMetrics returns the metrics of benchmarks as "name unit", and in milliseconds those
// of the storm.
func readMetrics(output []byte) map[string]float64 {
	metrics := map[string]float64{}
	for line := range bytes.Lines(output) {
		if found := stormLine.FindSubmatch(line); found != nil {
			if took, err := time.ParseDuration(string(found[1])); err == nil {
				metrics["storm p99"] = milliseconds(took)
			}
		}
		found := benchmarkLine.FindStringSubmatch(strings.TrimSpace(string(line)))
		if found == nil {
			continue
		}
		fields := strings.Fields(found[2])
		for i := 0; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				metrics[found[1]+" "+fields[i+1]] = value
			}
		}
	}
	return metrics
}
