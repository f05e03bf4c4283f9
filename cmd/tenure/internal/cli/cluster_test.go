package cli

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/testkit"
)

// cluster returns the JSON output of "tenure cluster status".
func (p place) cluster(t *testing.T) record.Cluster {
	t.Helper()
	var seen record.Cluster
	invoke(t, p.with("cluster", "status", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen)
	return seen
}

// awaitCluster reads the cluster until it is as wanted.
func (p place) awaitCluster(t *testing.T, what string, holds func(record.Cluster) bool) (seen record.Cluster) {
	t.Helper()
	testkit.AwaitNil(t, patience, func() error {
		if seen = p.cluster(t); !holds(seen) {
			return fmt.Errorf("not %s: %+v", what, seen)
		}
		return nil
	})
	return seen
}

// nodeNamed returns the one node of a name.
func nodeNamed(t *testing.T, seen record.Cluster, name string) record.Node {
	t.Helper()
	var found []record.Node
	for _, node := range seen.Nodes {
		if node.Name == name {
			found = append(found, node)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d nodes are called %q: %+v", len(found), name, seen)
	}
	return found[0]
}

// The command shows nodes, including dead ones, leaders and counts.
func TestClusterStatusShowsNodesAndLeaders(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	if empty := invoke(t, place.with("cluster", "status")...); empty.code != console.ExitUsage || !strings.Contains(empty.stderr, "a node creates them, or tenure migrate") {
		t.Errorf("without a schema: %+v", empty)
	}
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	if empty := place.cluster(t); empty.Name != "default" || len(empty.Nodes) != 0 || empty.Nodes == nil || empty.Leaders == nil || empty.Counts != (record.Counts{}) {
		t.Errorf("empty: %+v", empty)
	}
	one := place.run(t, "--role", "billing", "--role", "reports", "--name", "one")
	one.await("acquired")
	one.await("acquired")
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	three := place.run(t, "--role", "billing", "--name", "three")
	three.await("acquire_failed")
	three.signal(syscall.SIGKILL)

	seen := place.awaitCluster(t, "one death", func(c record.Cluster) bool { return c.Counts.Dead == 1 })
	if want := (record.Counts{Active: 2, Dead: 1, Total: 3}); seen.Counts != want {
		t.Errorf("counts %+v, want %+v", seen.Counts, want)
	}
	leader := nodeNamed(t, seen, "one")
	if leader.Status != tenure.StatusActive || strings.Join(leader.Leads, " ") != "billing reports" || leader.LeaseSeconds != 10 ||
		leader.UptimeSeconds <= 0 || leader.UptimeSeconds > patience.Seconds() || leader.Hostname == "" {
		t.Errorf("leader %+v", leader)
	}
	if standby := nodeNamed(t, seen, "two"); standby.Leads == nil || len(standby.Leads) != 0 || standby.Labels == nil {
		t.Errorf("standby %+v", standby)
	}
	if dead := nodeNamed(t, seen, "three"); dead.Status != tenure.StatusDead {
		t.Errorf("dead %+v", dead)
	}
	if len(seen.Leaders) != 2 || seen.Leaders[0].Role != "billing" || seen.Leaders[0].Leader.Node != leader.ID || seen.Leaders[1].Role != "reports" {
		t.Errorf("leaders %+v", seen.Leaders)
	}

	text := invoke(t, place.with("cluster", "status", "--cluster-name", "shop")...).want(t, console.ExitDone).stdout
	for _, want := range []string{
		`^shop, database postgres on 127\.0\.0\.1:\d+, schema ` + place.schema + `: 3 nodes: 2 active, 0 joining, 0 draining, 1 dead\n\nID +NAME +HOSTNAME +STATUS +ROLES +LOAD +UPTIME +VERSION\n`,
		`\n` + leader.ID.String()[:8] + ` +one +\S+ +active +.*billing\*, reports\* +\d+% +\d+s`,
		`\n[0-9a-f]{8} +two +\S+ +active +`,
		`\n[0-9a-f]{8} +three +\S+ +dead +.* - +\d+s`,
		`\n\nROLE +LEADER +ID +TERM +SINCE\nbilling +one +` + leader.ID.String()[:8] + ` +\d{13} +20`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// The command reports every change, and nothing else, until a signal.
func TestClusterWatchReportsEveryChange(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	watch := launch(t, place.with("cluster", "status", "--watch", "-o", "json", "--check-interval", "0.1")...)
	next := func() record.Cluster {
		t.Helper()
		line, ok := watch.line()
		if !ok {
			t.Fatalf("the watch ended: %s", watch.log())
		}
		var seen record.Cluster
		result{stdout: line}.decode(t, &seen)
		return seen
	}
	last := next()
	if last.Counts.Active != 1 {
		t.Fatalf("first %+v", last)
	}
	await := func(what string, holds func(record.Cluster) bool) {
		t.Helper()
		for !holds(last) {
			before := cluster.Settled(last)
			if last = next(); cluster.Settled(last) == before {
				t.Fatalf("before %s: printed twice: %+v", what, last)
			}
		}
	}
	two := place.run(t, "--role", "billing", "--name", "two")
	await("a join", func(c record.Cluster) bool { return c.Counts.Active == 2 })
	one.signal(syscall.SIGKILL)
	await("a death", func(c record.Cluster) bool { return c.Counts.Dead == 1 })
	await("the next leader", func(c record.Cluster) bool {
		return len(c.Leaders) == 1 && c.Leaders[0].Leader.NodeName == "two"
	})
	two.signal(syscall.SIGTERM)
	await("a leave", func(c record.Cluster) bool { return c.Counts.Active == 0 && c.Counts.Total == 1 && len(c.Leaders) == 0 })
	watch.signal(syscall.SIGTERM)
	if code := watch.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, watch.log())
	}
}

// Commands that need the registry say so before they change anything.
func TestClusterCommandsRefuseLeases(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"cluster", "status"}, {"node", "list"}, {"node", "show", "a"}, {"node", "forget", "a"},
		{"node", "drain", "a"}, {"node", "undrain", "a"}, {"rebalance", "--dry-run"},
	} {
		got := invoke(t, append(args, "--dsn", "sqlite:"+t.TempDir()+"/leases.db")...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "only PostgreSQL") {
			t.Errorf("%v: %q", args, got.stderr)
		}
	}
}
