package main

import (
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// cheap is a result that meets each bound of a cost exactly.
func cheap() record {
	return record{Format: recordFormat, Costs: []costRecord{
		{Cost: costAtRest, Nodes: 3, Roles: 1, Statements: pointer(0.4)},
		{Cost: costAtRest, Nodes: 500, Roles: 10000, Statements: pointer(0.4)},
		{Cost: costMemory, Nodes: 2, Roles: 1, Resident: pointer(15)},
		{Cost: costMemory, Nodes: 2, Roles: 10000, Resident: pointer(60)},
		{Cost: costMemory, Nodes: 2, Roles: 7, Resident: pointer(600)}, // has no bound
	}}
}

func TestCheckAcceptsCostsWithinBounds(t *testing.T) {
	var out strings.Builder
	if err := cheap().check(&out); err != nil || out.String() != "" {
		t.Errorf("got %v and %q, want neither an error nor a line", err, out.String())
	}
}

func TestCheckPrintsOneLineForEachMissedCost(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]costRecord)
		line   string
	}{
		"one role":    {func(all []costRecord) { all[0].Statements = pointer(0.41) }, "missed: at-rest/nodes=3/roles=1: statements a second and node is 0.41, want at most 0.40\n"},
		"many nodes":  {func(all []costRecord) { all[1].Statements = pointer(0.58) }, "missed: at-rest/nodes=500/roles=10000: statements a second and node is 0.58, want at most 0.40\n"},
		"memory":      {func(all []costRecord) { all[2].Resident = pointer(15.1) }, "missed: memory/nodes=2/roles=1: the resident memory in MB is 15.10, want at most 15.00\n"},
		"more memory": {func(all []costRecord) { all[3].Resident = pointer(61) }, "missed: memory/nodes=2/roles=10000: the resident memory in MB is 61.00, want at most 60.00\n"},
		"no figure":   {func(all []costRecord) { all[0].Statements = nil }, "missed: at-rest/nodes=3/roles=1: nothing was measured\n"},
		"not measured": {func(all []costRecord) {
			all[2] = costRecord{Cost: costMemory, Nodes: 2, Roles: 1, NotMeasured: "no /proc"}
		}, "missed: memory/nodes=2/roles=1: not measured: no /proc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := cheap()
			c.change(r.Costs)
			var out strings.Builder
			if err := r.check(&out); !errors.Is(err, errMissed) || out.String() != c.line {
				t.Errorf("got %v and %q, want errMissed and %q", err, out.String(), c.line)
			}
		})
	}
}

func TestStatementsAreDividedByNodesAndSeconds(t *testing.T) {
	got := statementRecord(map[string]int{"watch": 2, "heartbeat": 18, "members": 2}, 2, 20*time.Second)
	want := costRecord{Seconds: 20, Statements: pointer(0.55), Sent: []statementCount{{"heartbeat", 18}, {"members", 2}, {"watch", 2}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v with %.3f statements, want %+v with %.3f", got, value(got.Statements), want, *want.Statements)
	}
}

func TestResidentMemoryIsReadFromStatus(t *testing.T) {
	got, err := residentMemory("Name:\tVmRSS:\nVmHWM:\t  90000 kB\nVmRSS:\t  15625 kB\n")
	if err != nil || got != 16 {
		t.Errorf("got %v, %v, want 16 MB", got, err)
	}
	if got, err := residentMemory("VmHWM:\t  90000 kB\n"); err == nil {
		t.Errorf("without VmRSS: got %v, want an error", got)
	}
}

func TestCrowdAddsACost(t *testing.T) {
	if got, want := len(options{}.costs()), len(costs); got != want {
		t.Errorf("without -crowd: got %d costs, want %d", got, want)
	}
	all := options{crowd: 500}.costs()
	if last := all[len(all)-1]; len(all) != len(costs)+1 || last.name != costAtRest || last.nodes != 500 {
		t.Errorf("got %d costs and last %q with %d nodes, want %d and 500 nodes at rest", len(all), last.name, last.nodes, len(costs)+1)
	}
}

// Real nodes rest, a process with several nodes among them, and are measured.
func TestCostsOfRealNodesAreMeasured(t *testing.T) {
	pgtest.Long(t)
	if _, err := os.Stat("/proc"); err != nil {
		t.Fatalf("%s has no /proc: %v", runtime.GOOS, err)
	}
	saved, most := costs, crowded
	defer func() { costs, crowded = saved, most }()
	crowded = 4 // fifty nodes with the race detector take minutes to start on a busy machine
	costs = []cost{
		{name: costAtRest, nodes: crowded + 1, roles: 1, measure: measureStatements},
		{name: costMemory, nodes: 2, roles: 20, measure: measureMemory},
	}
	var printed strings.Builder
	o := options{only: "at-rest,memory", lease: 3 * time.Second, rest: 10 * time.Second, settling: time.Second, json: t.TempDir() + "/r.json"}
	if err := o.run(t.Context(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	r, err := readRecord(o.json)
	if err != nil || len(r.Costs) != 2 {
		t.Fatalf("got %+v, %v, want two costs", r, err)
	}
	rest, memory := r.Costs[0], r.Costs[1]
	// A heartbeat follows every 10/3 s at the latest.
	if value(rest.Statements) < 0.2 || len(rest.Sent) == 0 || rest.Sent[0].Statement != "heartbeat" || rest.Sent[0].Count < 2*(crowded+1) {
		t.Errorf("got %s, want at least two heartbeats of each of %d nodes", rest, crowded+1)
	}
	if value(memory.Resident) < 1 || memory.Nodes != 2 || memory.Roles != 20 {
		t.Errorf("got %s, want more than 1 MB", memory)
	}
}
