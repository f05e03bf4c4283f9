package cli

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// drain launches "tenure node drain" that prints JSON.
func (p place) drain(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, p.with(append([]string{"node", "drain", "-o", "json"}, args...)...)...)
}

// pair launches two nodes, of which the first leads.
func (p place) pair(t *testing.T) (one, two *process) {
	t.Helper()
	one = p.run(t, "--role", "billing", "--role", "reports", "--name", "one")
	one.await("acquired")
	one.await("acquired")
	two = p.run(t, "--role", "billing", "--role", "reports", "--name", "two")
	two.await("acquire_failed")
	two.await("acquire_failed")
	return one, two
}

// The command drains a node of another process, undrains it, and reports the
// progress.
func TestDrainCommandsReachNodeOfAnotherProcess(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one, two := place.pair(t)
	drain := place.drain(t, "one")
	steps := drain.rest()
	if code := drain.exit(); code != console.ExitDone {
		t.Fatalf("exit code %d: %s", code, drain.log())
	}
	last := steps[len(steps)-1]
	if last["event"] != cluster.DrainDone || last["node_name"] != "one" || last["status"] != "draining" || last["led_roles"] != 0.0 {
		t.Errorf("the last step is %v", last)
	}
	for _, step := range steps[:len(steps)-1] {
		if step["event"] != cluster.DrainProgress {
			t.Errorf("a step is %v", step)
		}
	}
	two.await("acquired")
	two.await("acquired")
	seen := place.cluster(t)
	if node := nodeNamed(t, seen, "one"); node.Status != tenure.StatusDraining || node.StatusBy != connect.WhoAsks() || !node.Drained || len(node.Leads) != 0 {
		t.Errorf("drained: %+v", node)
	}
	if text := invoke(t, place.with("node", "list")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "drained") {
		t.Errorf("list:\n%s", text)
	}
	if text := invoke(t, place.with("node", "show", "one")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "drained, requested by "+connect.WhoAsks()+"\n") {
		t.Errorf("show:\n%s", text)
	}
	// Again, by the beginning of its id: nothing is left to do.
	id := nodeNamed(t, seen, "one").ID.String()
	if text := invoke(t, place.with("node", "drain", id[:8])...).want(t, console.ExitDone).stdout; !strings.HasSuffix(text, "  one ("+id+")  drained\n") {
		t.Errorf("again: %q", text)
	}
	// Who drains accepts no roles.
	got := invoke(t, place.with("node", "drain", "two", "--to", "one", "--force")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "accepts no roles") {
		t.Errorf("%q", got.stderr)
	}

	if text := invoke(t, place.with("node", "undrain", "one")...).want(t, console.ExitDone).stdout; !strings.HasSuffix(text, "  undrained\n") {
		t.Errorf("undrain: %q", text)
	}
	var history roles.NodeHistoryRecord
	invoke(t, place.with("history", "--nodes", "--node", "one", "-o", "json")...).want(t, console.ExitDone).decode(t, &history)
	var asked []string
	for _, change := range history.Changes {
		if change.By == connect.WhoAsks() {
			asked = append(asked, change.Status)
		}
	}
	if !slices.Equal(asked, []string{"active", "draining"}) {
		t.Errorf("%+v; want a drain and its end that this user asked for", history.Changes)
	}
	place.stepDown(t, "--to", "one")
	one.await("acquired")
	drain = place.drain(t, "one", "--to", "two")
	drain.rest()
	if code := drain.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, drain.log())
	}
	two.await("acquired")
}

// A command ends gracefully, and runs again when the node is undrained and
// leads.
func TestDrainedCommandRunsAgainAfterUndrain(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := launch(t, append(place.with("run", "--role", "billing", "--name", "one"), "--", "sh", "-c",
		`trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.1; done`)...)
	expect := func(want string) {
		t.Helper()
		if line, _ := one.line(); line != want {
			t.Fatalf("%q, want %q", line, want)
		}
	}
	expect("ready")
	drain := place.drain(t, "one", "--force")
	expect("stopping")
	if drain.rest(); drain.exit() != console.ExitDone {
		t.Errorf("draining: %s", drain.log())
	}
	if seen := place.cluster(t); len(seen.Leaders) != 0 {
		t.Errorf("leaders %+v", seen.Leaders)
	}
	invoke(t, place.with("node", "undrain", "one")...).want(t, console.ExitDone)
	expect("ready")
	one.signal(syscall.SIGTERM)
	expect("stopping")
	if code := one.exit(); code != console.ExitDone {
		t.Errorf("exit code %d: %s", code, one.log())
	}
}

// Draining the only node is refused without --force, and nothing is changed.
func TestDrainOfOnlyNodeNeedsForce(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	for _, more := range [][]string{nil, {"--no-wait"}} {
		got := invoke(t, place.with(append([]string{"node", "drain", "one"}, more...)...)...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "only active node") || got.stdout != "" {
			t.Errorf("%q, %q", got.stdout, got.stderr)
		}
	}
	if node := nodeNamed(t, place.cluster(t), "one"); node.Status != tenure.StatusActive || len(node.Leads) != 1 {
		t.Errorf("%+v", node)
	}
	text := invoke(t, place.with("node", "drain", "one", "--force", "--no-wait")...).want(t, console.ExitDone).stdout
	if !strings.HasSuffix(text, "drain requested\n") {
		t.Errorf("%q", text)
	}
	place.awaitCluster(t, "drained", func(c record.Cluster) bool { return nodeNamed(t, c, "one").Drained })
}

// The command reports what is left, and the node keeps draining.
func TestDrainTimeoutReportsRemainingWork(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one, _ := place.pair(t)
	one.signal(sandbox.PauseSignal)
	got := invoke(t, place.with("node", "drain", "one", "--timeout", "0.5")...).want(t, console.ExitNotAcquired)
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "is not drained after 500ms") || !strings.Contains(got.stderr, "leads 2") {
		t.Errorf("%q", got.stderr)
	}
	if !strings.Contains(got.stderr, "it has not begun") || strings.Contains(got.stderr, "keeps draining") {
		t.Errorf("a node that does not answer: %q", got.stderr)
	}
	drain := place.drain(t, "one")
	drain.await(cluster.DrainProgress)
	drain.signal(syscall.SIGTERM)
	if code := drain.exit(); code != console.ExitNotAcquired || !strings.Contains(drain.log(), "interrupted; one") || strings.Contains(drain.log(), "keeps draining") {
		t.Errorf("interrupted: exit code %d: %s", code, drain.log())
	}
	one.signal(sandbox.ResumeSignal)
	place.awaitCluster(t, "drained", func(c record.Cluster) bool { return nodeNamed(t, c, "one").Drained })
}

// If the database has not recorded the request in time, nothing drains, and the command does
// not claim that the node does.
func TestUnconfirmedDrainIsReported(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.pair(t)
	conn := place.server.Conn(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, tx, "LOCK TABLE "+pgx.Identifier{place.schema, "tenure_requests"}.Sanitize()+" IN SHARE MODE") // reads continue
	interrupted := place.drain(t, "one")
	awaitBlocked(t, place, conn.PgConn().PID(), "LOCK TABLE")
	interrupted.signal(syscall.SIGTERM)
	for _, drain := range []*process{interrupted, place.drain(t, "one", "--timeout", "0.5")} {
		code := drain.exit()
		if log := drain.log(); code != console.ExitNotAcquired || strings.Contains(log, "keeps draining") || !strings.Contains(log, "tenure node list") {
			t.Errorf("exit code %d, want %d, without a claim that the node drains: %s", code, console.ExitNotAcquired, log)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if node := nodeNamed(t, place.cluster(t), "one"); node.Status != tenure.StatusActive {
		t.Errorf("the node is %s, want active", node.Status)
	}
}

func TestDeathWhileDrainingIsReported(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one, two := place.pair(t)
	one.signal(sandbox.PauseSignal)
	drain := place.drain(t, "one")
	drain.await(cluster.DrainProgress)
	one.signal(syscall.SIGKILL)
	if code := drain.exit(); code != console.ExitNotAcquired || !strings.Contains(drain.log(), "died while it drained") {
		t.Errorf("exit code %d: %s", code, drain.log())
	}
	two.await("acquired")
	got := invoke(t, place.with("node", "drain", "one")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "is dead") {
		t.Errorf("%q", got.stderr)
	}
}

// If two operators drain the same node, both commands wait until it is drained.
// If they drain the last two nodes, one is refused.
func TestConcurrentDrainCommandsLeaveOneNodeActive(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.pair(t)
	place.run(t, "--role", "billing", "--name", "three").await("acquire_failed")
	both := func(nodes ...string) []int {
		codes := make([]int, len(nodes))
		var done sync.WaitGroup
		for i, node := range nodes {
			done.Go(func() { codes[i] = invoke(t, place.with("node", "drain", node)...).code })
		}
		done.Wait()
		slices.Sort(codes)
		return codes
	}
	if codes := both("three", "three"); !slices.Equal(codes, []int{console.ExitDone, console.ExitDone}) {
		t.Errorf("the same node: %v", codes)
	}
	if codes := both("one", "two"); !slices.Equal(codes, []int{console.ExitDone, console.ExitUsage}) {
		t.Errorf("the last two nodes: %v", codes)
	}
}
