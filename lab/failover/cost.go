package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/statements"
)

// cost is a scenario without a fault: what nodes need while nothing happens. All nodes are
// candidates for all roles, and the first one leads them.
type cost struct {
	name         string
	nodes, roles int
	measure      func(ctx context.Context, b *bench, c cost) (costRecord, error)
}

const (
	costAtRest = "at-rest"
	costMemory = "memory"
)

// costs are the scenarios of every run. -crowd adds one.
var costs = []cost{
	{name: costAtRest, nodes: nodes, roles: 1, measure: measureStatements},
	{name: costAtRest, nodes: nodes, roles: 10000, measure: measureStatements},
	{name: costMemory, nodes: 2, roles: 1, measure: measureMemory},
	{name: costMemory, nodes: 2, roles: 10000, measure: measureMemory},
}

// crowded is the most nodes that share a process.
var crowded = 50

// settlePeriod is how long nodes rest before they are measured: three check intervals, in
// which candidates find out who leads.
const settlePeriod = 15 * time.Second

func (o options) costs() []cost {
	all := slices.Clone(costs)
	if o.crowd > 0 {
		all = append(all, cost{name: costAtRest, nodes: o.crowd, roles: 1, measure: measureStatements})
	}
	return all
}

// run measures the cost once.
func (c cost) run(ctx context.Context, b *bench) (costRecord, error) {
	defer b.killAll()
	if err := b.vacate(ctx); err != nil {
		return costRecord{}, err
	}
	found, err := c.measure(ctx, b, c)
	found.Cost, found.Nodes, found.Roles = c.name, c.nodes, c.roles
	return found, err
}

// settle starts the nodes, in as few processes as the number permits, waits until the
// first leads all roles, and lets them rest.
func (c cost) settle(ctx context.Context, b *bench) error {
	together := 1
	if c.nodes > crowded {
		together = crowded
	}
	kind := []string{"-dsn", b.server.DSN(), "-roles", strconv.Itoa(c.roles)}
	if c.name == costAtRest {
		kind = append(kind, "-member") // which sends more than a node without a cluster
	}
	for left, first := c.nodes, true; left > 0; first = false {
		here := min(together, left)
		if first {
			here = 1 // it leads all roles before the others begin to campaign
		}
		started, err := b.spawn(ctx, nil, "child-resting", append(slices.Clone(kind), "-nodes", strconv.Itoa(here))...)
		if err == nil {
			err = awaitAll(ctx, started, "joined")
		}
		if err == nil && first {
			err = awaitAll(ctx, started, "acquired")
		}
		if err != nil {
			return err
		}
		left -= here
	}
	return rest(ctx, b.settling)
}

// awaitAll waits until all nodes of a process have joined, or until it has acquired all its
// roles. Hundreds of nodes and thousands of roles take a busy machine minutes.
func awaitAll(ctx context.Context, c *child, kind string) error {
	return children.Until(ctx, 15*patience, 10*time.Millisecond, func() error {
		select {
		case <-c.Ended():
			return fmt.Errorf("%s ended", c.Name)
		default:
		}
		if _, found := c.Find(kind, time.Time{}); !found {
			return fmt.Errorf("%s has not reported %q", c.Name, kind)
		}
		return nil
	})
}

// rest waits, because what is measured is a time without events.
func rest(ctx context.Context, period time.Duration) error {
	select {
	case <-time.After(period):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// measureStatements counts what the nodes send in a time without events.
func measureStatements(ctx context.Context, b *bench, c cost) (costRecord, error) {
	if err := c.settle(ctx, b); err != nil {
		return costRecord{}, err
	}
	before, err := b.sent(ctx)
	if err != nil {
		return costRecord{}, err
	}
	begun := time.Now()
	if err := rest(ctx, b.rest); err != nil {
		return costRecord{}, err
	}
	after, err := b.sent(ctx)
	if err != nil {
		return costRecord{}, err
	}
	return statementRecord(statements.Since(before, after), c.nodes, time.Since(begun)), nil
}

// sent adds up what all resting nodes have sent.
func (b *bench) sent(ctx context.Context) (map[string]int, error) {
	sum := map[string]int{}
	for _, c := range b.children {
		asked := time.Now()
		if err := c.Say("count"); err != nil {
			return nil, err
		}
		report, err := c.Await(ctx, "count", asked)
		if err != nil {
			return nil, err
		}
		var sent map[string]int
		if err := json.Unmarshal(report.Data, &sent); err != nil {
			return nil, err
		}
		for name, n := range sent {
			sum[name] += n
		}
	}
	return sum, nil
}

// statementRecord is the result of counting statements, the most frequent first.
func statementRecord(sent map[string]int, nodes int, took time.Duration) costRecord {
	r := costRecord{Seconds: took.Seconds()}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		total += sent[name]
		r.Sent = append(r.Sent, statementCount{name, sent[name]})
	}
	slices.SortStableFunc(r.Sent, func(a, b statementCount) int { return b.Count - a.Count })
	r.Statements = pointer(float64(total) / took.Seconds() / float64(nodes))
	return r
}

// measureMemory reads the resident memory of the processes after a time without events. The
// largest counts.
func measureMemory(ctx context.Context, b *bench, c cost) (costRecord, error) {
	if err := c.settle(ctx, b); err != nil {
		return costRecord{}, err
	}
	var r costRecord
	for _, process := range b.children {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID()))
		if errors.Is(err, os.ErrNotExist) {
			r.NotMeasured = "this system has no /proc"
			return r, nil
		}
		if err != nil {
			return r, err
		}
		resident, err := residentMemory(string(status))
		if err != nil {
			return r, err
		}
		r.Resident = pointer(max(value(r.Resident), resident))
	}
	return r, nil
}

// residentMemory returns the resident memory in MB of a process from its status in /proc.
func residentMemory(status string) (float64, error) {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kibibytes, err := strconv.ParseFloat(fields[1], 64)
			return kibibytes * 1024 / 1e6, err
		}
	}
	return 0, errors.New("the status of a process has no VmRSS")
}

// costHeader is the header of the table of costs.
var costHeader = fmt.Sprintf("\n%-22s %6s %6s %18s %12s  %s", "cost", "nodes", "roles", "statements/s/node", "resident MB", "bound")

// String is the row of the table, with the statements below it.
func (r costRecord) String() string {
	if r.NotMeasured != "" {
		return fmt.Sprintf("%-22s %6d %6d not measured: %s", r.Cost, r.Nodes, r.Roles, r.NotMeasured)
	}
	line := fmt.Sprintf("%-22s %6d %6d %18s %12s  %s", r.Cost, r.Nodes, r.Roles, optional("%.3f", r.Statements), optional("%.1f", r.Resident), r.bound())
	for _, s := range r.Sent {
		line += fmt.Sprintf("\n  %-40s %6d %18.3f", s.Statement, s.Count, float64(s.Count)/r.Seconds/float64(r.Nodes))
	}
	return line
}
