package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// Each error is one line with exit code 2, and nothing is registered.
func TestMembershipRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	on := func(args ...string) []string { return place.with(append([]string{"run", "--role", "a"}, args...)...) }
	file := []string{"run", "--role", "a", "--dsn", "sqlite:" + t.TempDir() + "/leases.db"}
	listed := writeFile(t, "[cluster.membership]", "min_nodes = 2")
	for _, test := range []struct {
		args []string
		want string
	}{
		{on("--min-nodes", "-1"), "between 0 and 10000"},
		{on("--min-nodes", "many"), "must be an integer"},
		{on("--http-port", "65536"), "between 0 and 65535"},
		{on("--grpc-port", "-1"), "between 0 and 65535"},
		{on("--label", "zone"), "NAME=VALUE"},
		{on("--label", "zone=eu", "--label", "zone=us"), `"zone" is given twice`},
		{on("--capability", ""), "--capability is empty"},
		{on("--node-role", ""), "--node-role is empty"},
		{on("--address", ""), "--address is empty"},
		{on("--capability", "a\x01b"), "in the node description must be at most"},
		{on("--heartbeat-interval", "0"), "more than zero"},
		{on("--drain-timeout", "-1s"), "must not be negative"},
		{append(file, "--min-nodes", "2"), "--min-nodes needs the registry of nodes"},
		{append(file, "--require-node-role", "scheduler"), "--require-node-role needs the registry of nodes"},
		{on("--label", "tenure.priority=high"), "must be an integer"},
		{on("--priority", "2147483648"), "between -2147483648 and 2147483647"},
		{on("--take-over-after", "25h"), "at most 24h"},
		{on("--take-over-after", "1s", "--no-leader"), "--take-over-after and --no-leader contradict each other"},
		{on("--take-over-after", "1s", "--once", "--", "true"), "--take-over-after and --once contradict each other"},
		{[]string{"run", "--role", "a", "--take-over-after", "1s", "--agent", "/run/none.sock"}, "instead of --agent"},
		{append(file, "--capability", "gpu"), "--capability needs the registry of nodes"},
		{append(file, "--config", listed), "tenure.toml:2: cluster.membership.min_nodes needs the registry of nodes"},
		{place.with("acquire", "--role", "a", "--min-nodes", "2"), "unknown flag"},
	} {
		got := invoke(t, test.args...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: %q, want %s", test.args, got.stderr, test.want)
		}
	}
	if got := invoke(t, place.with("cluster", "status")...); got.code != console.ExitUsage {
		t.Errorf("something was created: %+v", got)
	}
}

// The registry has what the flags say about a node.
func TestRunWritesDescription(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "plain").await("acquired")
	path := writeFile(t, "[node]", `labels = ["zone=eu", "disk=a=b"]`, `capabilities = ["gpu"]`, "http_port = 8080")
	place.run(t, "--role", "billing", "--name", "told", "--config", path, "--node-role", "worker", "--node-role", "billing",
		"--address", "10.0.0.7", "--grpc-port", "9090", "--heartbeat-interval", "0.2").await("acquire_failed")
	seen := place.cluster(t)
	plain, told := nodeNamed(t, seen, "plain"), nodeNamed(t, seen, "told")
	if want := []string{"gateway", "function", "worker", "scheduler"}; !slices.Equal(plain.Roles, want) || plain.Address == "" || plain.Version == "" {
		t.Errorf("%+v", plain)
	}
	if !slices.Equal(told.Roles, []string{"worker", "billing"}) || !slices.Equal(told.Capabilities, []string{"gpu"}) || len(told.Labels) != 2 ||
		told.Labels["disk"] != "a=b" || told.Address != "10.0.0.7" || told.HTTPPort != 8080 || told.GRPCPort != 9090 {
		t.Errorf("%+v", told)
	}
	place.awaitCluster(t, "a measured load", func(c record.Cluster) bool { return nodeNamed(t, c, "told").MemoryUsage > 0 })
}

// A node publishes the port of --listen, unless it is given another one.
func TestListenPublishesPort(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "a", "--name", "listens", "--listen", "127.0.0.1:0").await("acquired")
	place.run(t, "--role", "b", "--name", "given", "--listen", "127.0.0.1:0", "--http-port", "8080").await("acquired")
	seen := place.cluster(t)
	if port := nodeNamed(t, seen, "given").HTTPPort; port != 8080 {
		t.Errorf("with --http-port: %d", port)
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", nodeNamed(t, seen, "listens").HTTPPort))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
}

// No node campaigns before the third has joined; then all nodes continue,
// however many leave.
func TestMinNodesDelaysCampaign(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	start := func(name string) *process {
		return place.run(t, "--role", "billing", "--name", name, "--min-nodes", "3", "--startup-timeout", "0.5", "--listen", "127.0.0.1:0")
	}
	one := start("one")
	one.awaitLog("1 of 3 node")
	one.awaitLog("the startup timeout has passed")
	two := start("two")
	two.awaitLog("2 of 3 nodes")
	if seen := place.cluster(t); seen.Counts != (record.Counts{Joining: 2, Total: 2}) || len(seen.Leaders) != 0 {
		t.Errorf("%+v", seen)
	}
	three := start("three")
	leader, _ := awaitAny(t, "acquired", one, two, three)
	place.awaitCluster(t, "three active nodes", func(c record.Cluster) bool { return c.Counts == record.Counts{Active: 3, Total: 3} })
	one.awaitLog("the node campaigns now")

	leader.signal(syscall.SIGTERM)
	if code := leader.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, leader.log())
	}
	others := slices.DeleteFunc([]*process{one, two, three}, func(p *process) bool { return p == leader })
	last, _ := awaitAny(t, "acquired", others...)
	others = slices.DeleteFunc(others, func(p *process) bool { return p == last })
	last.signal(syscall.SIGKILL)
	others[0].await("acquired")
}

// Only the node with the required label and node role leads, although the others came first.
func TestOnlyEligibleNodesLead(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	watches := place.run(t, "--role", "billing", "--name", "watches", "--no-leader", "--listen", "127.0.0.1:0", "--log-level", "info")
	watches.awaitLog("session opened")
	slow := place.run(t, "--role", "billing", "--name", "slow", "--require", "disk=ssd", "--label", "disk=hdd", "--listen", "127.0.0.1:0", "--log-level", "info")
	slow.awaitLog("session opened")
	worker := place.run(t, "--role", "billing", "--name", "worker", "--require-node-role", "scheduler", "--node-role", "worker", "--listen", "127.0.0.1:0", "--log-level", "info")
	worker.awaitLog("session opened")
	place.awaitCluster(t, "three active nodes", func(c record.Cluster) bool { return c.Counts.Active == 3 })
	fast := place.run(t, "--role", "billing", "--name", "fast", "--require", "disk=ssd", "--label", "disk=ssd", "--require-node-role", "scheduler")
	fast.await("acquired")
	fast.signal(syscall.SIGTERM)
	if code := fast.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, fast.log())
	}
	seen := place.cluster(t)
	if seen.Counts.Active != 3 || len(seen.Leaders) != 0 {
		t.Errorf("%+v; want three active nodes and no leader", seen)
	}
	if nodeRoles := nodeNamed(t, seen, "watches").Roles; slices.Contains(nodeRoles, "scheduler") {
		t.Errorf("the node that only watches has the node roles %q, want none for leaders", nodeRoles)
	}
}

// The node with the highest priority takes over from the first leader, and once: the
// priority counts more than the preferred label.
func TestPreferredProcessTakesOver(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	start := func(name string, more ...string) *process {
		return place.run(t, append([]string{"--role", "billing", "--name", name, "--prefer", "zone=a", "--take-over-after", "0.3", "--check-interval", "0.2"}, more...)...)
	}
	plain := start("plain")
	first := plain.await("acquired")
	near := start("near", "--label", "zone=a", "--label", "tenure.priority=9", "--priority", "0")
	second := near.await("acquired")
	plain.await("released")
	high := start("high", "--priority", "1")
	third := high.await("acquired")
	near.await("released")
	if first.term() >= second.term() || second.term() >= third.term() {
		t.Errorf("the terms %d, %d and %d do not increase", first.term(), second.term(), third.term())
	}
	place.awaitCluster(t, "the leader with its priority", func(c record.Cluster) bool {
		return nodeNamed(t, c, "high").Labels["tenure.priority"] == "1" && nodeNamed(t, c, "near").Labels["tenure.priority"] == "0" &&
			len(c.Leaders) == 1 && c.Leaders[0].Leader != nil && c.Leaders[0].Leader.NodeName == "high"
	})
	var ended roles.TermHistoryRecord
	invoke(t, place.with("history", "--role", "billing", "-o", "json")...).want(t, console.ExitDone).decode(t, &ended)
	for _, by := range []string{"preferred node near", "preferred node high"} {
		if !slices.ContainsFunc(ended.Terms, func(term roles.TermRecord) bool { return term.By == by && term.Reason == string(history.EndHandedOver) }) {
			t.Errorf("no term was handed over on request of %q: %+v", by, ended.Terms)
		}
	}
}

// A second node with the same name is refused only while the first is alive.
func TestUniqueNamesRefuseSecondNode(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	first := place.run(t, "--role", "billing", "--name", "one", "--unique-names")
	first.await("acquired")
	got := invoke(t, place.with("run", "--role", "billing", "--name", "one", "--unique-names")...).want(t, console.ExitUsage)
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "another live node has this name") {
		t.Errorf("%q", got.stderr)
	}
	first.signal(syscall.SIGKILL)
	<-first.done
	place.run(t, "--role", "billing", "--name", "one", "--unique-names").await("acquired")

	dsn := "sqlite:" + t.TempDir() + "/leases.db" // leases know their nodes, too
	launch(t, "run", "--role", "billing", "--name", "one", "-o", "json", "--dsn", dsn).await("acquired")
	got = invoke(t, "run", "--role", "billing", "--name", "one", "--unique-names", "--dsn", dsn).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "another live node has this name") {
		t.Errorf("%q", got.stderr)
	}
}

// A node that is asked to end is shown as draining before its command ends, and
// its role moves without waiting for a lease to expire.
func TestShutdownDrainsBeforeCommandEnds(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := launch(t, append(place.with("run", "--role", "billing", "--name", "one", "--lease", "1m", "--grace", "9s"), "--", "sh", "-c",
		`trap 'echo stopping; read line; exit 0' TERM; echo ready; while :; do sleep 0.1; done`)...)
	if line, _ := one.line(); line != "ready" {
		t.Fatalf("%q", line)
	}
	two := place.run(t, "--role", "billing", "--name", "two")
	two.await("acquire_failed")
	one.signal(syscall.SIGTERM)
	if line, _ := one.line(); line != "stopping" {
		t.Fatalf("%q", line)
	}
	seen := place.cluster(t)
	if node := nodeNamed(t, seen, "one"); node.Status != tenure.StatusDraining || !slices.Equal(node.Leads, []string{"billing"}) {
		t.Errorf("while the command ends: %+v", node)
	}
	if err := one.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := one.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, one.log())
	}
	two.await("acquired")
	if seen := place.cluster(t); seen.Counts != (record.Counts{Active: 1, Total: 1}) {
		t.Errorf("afterwards: %+v", seen.Counts)
	}
}
