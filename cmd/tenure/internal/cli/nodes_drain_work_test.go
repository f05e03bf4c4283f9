package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	clustercmd "github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// A node whose work outlasts its own drain timeout is not drained: the command fails and
// lists the work, and all outputs show a draining node. The end of the work suffices.
func TestDrainCommandFailsWhileWorkIsInFlight(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	worker, err := postgrestest.TryJoin(t, place.installation(t).NewBackend(), tenure.Config{Name: "worker"},
		cluster.Config{Shutdown: cluster.ShutdownConfig{DrainTimeout: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	work, _ := worker.InFlight().Enter()
	t.Cleanup(func() { work.Done() })
	got := invoke(t, place.with("node", "drain", "worker", "--timeout", "2")...).want(t, console.ExitNotAcquired)
	if !strings.Contains(got.stderr, "is not drained after 2s") || !strings.Contains(got.stderr, "1 units of work in flight") {
		t.Errorf("stderr is %q; want that the node is not drained, with 1 unit of work in flight", got.stderr)
	}
	if node := nodeNamed(t, place.cluster(t), "worker"); node.Drained || node.InFlight != 1 || node.Status != tenure.StatusDraining {
		t.Errorf("JSON shows %+v; want draining with 1 unit of work in flight", node)
	}
	if text := invoke(t, place.with("node", "list")...).want(t, console.ExitDone).stdout; strings.Contains(text, "drained") {
		t.Errorf("node list shows a drained node with work in flight:\n%s", text)
	}
	work.Done()
	place.awaitCluster(t, "drained", func(c record.Cluster) bool {
		node := nodeNamed(t, c, "worker")
		if node.Drained && node.InFlight != 0 {
			t.Errorf("JSON shows a drained node with %d units of work in flight; want 0", node.InFlight)
		}
		return node.Drained
	})
	drain := place.drain(t, "worker")
	steps := drain.rest()
	if code := drain.exit(); code != console.ExitDone || steps[len(steps)-1]["event"] != clustercmd.DrainDone {
		t.Errorf("exit code %d, steps %v; want the event drained", code, steps)
	}
}
