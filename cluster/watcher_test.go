package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/tenuretest"
)

// stage is a registry that a test writes, and a view that reads it when the test
// says so.
type stage struct {
	t     *testing.T
	clock *tenuretest.Clock
	view  *view

	mu      sync.Mutex
	members []tenure.Member
	failure error
}

const stageInterval = time.Second

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, clock: tenuretest.NewClock()}
	ask := func(context.Context) ([]tenure.Member, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.members), s.failure
	}
	s.view = newView(ask, stageInterval, s.clock, slog.New(slog.DiscardHandler))
	return s
}

// member returns a node of a name, the later the higher its number.
func member(number int) tenure.Member {
	return tenure.Member{
		NodeInfo:    tenure.NodeInfo{ID: uuid.UUID{0: byte(number)}, Name: string(rune('a' + number))},
		Description: tenure.Description{Status: tenure.StatusActive},
		Incarnation: int64(number),
		StartedAt:   time.Unix(int64(number), 0),
		Lease:       10 * time.Second,
	}
}

// show makes the registry contain these nodes, and the view read it.
func (s *stage) show(members ...tenure.Member) {
	s.t.Helper()
	s.mu.Lock()
	s.members = members
	s.mu.Unlock()
	if err := s.view.read(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// watch begins to watch, until the end of the test.
func (s *stage) watch(filter Filter) <-chan Change {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	changes := make(chan Change)
	var group sync.WaitGroup
	group.Go(func() { newWatcher(s.view, filter).run(ctx, changes) })
	s.t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return changes
}

// expect receives a change and compares it: its kind, its node's name, and the
// names of all nodes after it.
func expect(t *testing.T, changes <-chan Change, kind ChangeKind, name string, all ...string) Change {
	t.Helper()
	select {
	case change := <-changes:
		var names []string
		for _, node := range change.Nodes {
			names = append(names, node.Name)
		}
		if change.Kind != kind || change.Node.Name != name || !slices.Equal(names, all) {
			t.Fatalf("got %s %q and then %v; want %s %q and then %v", change.Kind, change.Node.Name, names, kind, name, all)
		}
		return change
	case <-time.After(20 * time.Second):
		t.Fatalf("%s %q did not come", kind, name)
		return Change{}
	}
}

// silent checks that no further change is reported for what the view has read: the
// next reported change is that of another node, which it adds and removes again.
func (s *stage) silent(changes <-chan Change, members ...tenure.Member) {
	s.t.Helper()
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	s.show(append(slices.Clone(members), member(20))...)
	expect(s.t, changes, Joined, "u", append(slices.Clone(names), "u")...)
	s.show(members...)
	expect(s.t, changes, Left, "u", names...)
}

func TestWatcherSendsSnapshotThenChangesInOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	changes := s.watch(Filter{})
	select {
	case change := <-changes:
		t.Fatalf("before the registry was read came %+v", change)
	default:
	}
	s.show(member(0), member(1))
	expect(t, changes, Snapshot, "", "a", "b")
	s.show(member(0), member(1), member(2), member(3))
	expect(t, changes, Joined, "c", "a", "b", "c")
	expect(t, changes, Joined, "d", "a", "b", "c", "d")
	changed := member(1)
	changed.Address = "elsewhere"
	s.show(member(0), changed, member(3))
	expect(t, changes, Left, "c", "a", "b", "d")
	if change := expect(t, changes, Updated, "b", "a", "b", "d"); change.Node.Address != "elsewhere" ||
		change.Nodes[1].Address != "elsewhere" {
		t.Errorf("the update says %+v", change)
	}
	s.show()
	expect(t, changes, Left, "a", "b", "d")
	expect(t, changes, Left, "b", "d")
	expect(t, changes, Left, "d")
}

func TestWatcherSendsEmptySnapshot(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.show()
	expect(t, s.watch(Filter{}), Snapshot, "")
}

func TestWatcherMergesChangesForSlowReceiver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	changes := s.watch(Filter{})
	s.show(member(0), member(1))
	expect(t, changes, Snapshot, "", "a", "b")
	// The receiver reads nothing while c joins and leaves, d joins and moves, and b
	// leaves and returns as another node.
	s.show(member(0), member(1), member(2))
	moved, back := member(3), member(1)
	moved.Address, back.Version = "there", "v2"
	s.show(member(0), member(3))
	s.show(member(0), back, moved)
	// A change that was about to be sent when a later one replaced it may still be sent
	// first.
	merged := 0
	for change := (Change{}); len(change.Nodes) != 3 || change.Nodes[1].Version != "v2" || change.Nodes[2].Address != "there"; merged++ {
		change = testkit.Receive(t, changes, 20*time.Second, "the last one did not come")
	}
	if merged > 4 {
		t.Errorf("%d changes were reported", merged)
	}
	s.silent(changes, member(0), back, moved)
}

func TestWatcherReportsChangesOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	changes := s.watch(Filter{})
	s.show(member(0), member(1))
	expect(t, changes, Snapshot, "", "a", "b")
	// b has a new session, which puts it last; the registry cannot be read for a while;
	// heartbeats continue.
	again := member(1)
	again.Incarnation, again.LastHeartbeat = 99, time.Unix(1000, 0)
	s.failure = errors.New("no session")
	if err := s.view.read(t.Context()); err == nil {
		t.Fatal("the reading succeeded")
	}
	s.mu.Lock()
	s.failure = nil
	s.mu.Unlock()
	s.show(again, member(0))
	s.silent(changes, member(0), again)
}

func TestWatcherReportsLoadOncePerInterval(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	changes := s.watch(Filter{Load: true})
	s.show(member(0))
	expect(t, changes, Snapshot, "", "a")
	loaded := func(cpu float64) tenure.Member {
		m := member(0)
		m.CPU = cpu
		return m
	}
	s.clock.Advance(stageInterval - time.Millisecond)
	s.show(loaded(10))
	s.silent(changes, loaded(11))
	s.clock.Advance(time.Millisecond)
	s.show(loaded(12))
	if change := expect(t, changes, Updated, "a", "a"); change.Node.CPUUsage != 12 {
		t.Errorf("the update says %+v", change.Node)
	}
	s.silent(changes, loaded(13))
	// Any other change is reported immediately, together with the load.
	drained := loaded(14)
	drained.Labels = map[string]string{"zone": "x"}
	s.show(drained)
	if change := expect(t, changes, Updated, "a", "a"); change.Node.CPUUsage != 14 {
		t.Errorf("the update says %+v", change.Node)
	}
	// Load that does not change is no change, however long.
	s.clock.Advance(10 * stageInterval)
	s.silent(changes, drained)
}

func TestWatcherReportsNoLoadUnlessRequested(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	changes := s.watch(Filter{})
	s.show(member(0))
	expect(t, changes, Snapshot, "", "a")
	s.clock.Advance(stageInterval)
	loaded := member(0)
	loaded.CPU = 10
	s.show(loaded)
	s.silent(changes, loaded)
}

func TestWatcherReportsWhyANodeLeft(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	changes := s.watch(Filter{})
	s.show(member(0), member(1), member(2))
	expect(t, changes, Snapshot, "", "a", "b", "c")
	draining, dead := member(0), member(1)
	draining.Status = tenure.StatusDraining
	dead.SilentFor = dead.Lease + 1 // and no node has marked it
	s.show(draining, dead)
	if members, _ := s.view.members(); members[1].Status != Dead {
		t.Errorf("a node that was silent for longer than its lease is %s", members[1].Status)
	}
	if change := expect(t, changes, Left, "a", "b", "c"); change.Node.Status != Draining {
		t.Errorf("a left as %s", change.Node.Status)
	}
	if change := expect(t, changes, Left, "b", "c"); change.Node.Status != Dead {
		t.Errorf("b left as %s", change.Node.Status)
	}
	if change := expect(t, changes, Left, "c"); change.Node.Status != Active {
		t.Errorf("c, of which there is no trace, left as %s", change.Node.Status)
	}
}

func TestFilterMatchesEachField(t *testing.T) {
	t.Parallel()
	node := NodeInfo{
		Roles: []NodeRole{Gateway, Worker}, Capabilities: []string{"gpu"},
		Labels: map[string]string{"zone": "a", "empty": ""}, Status: Active,
	}
	draining := node
	draining.Status = Draining
	for _, c := range []struct {
		filter Filter
		node   NodeInfo
		want   bool
	}{
		{Filter{}, node, true},
		{Filter{}, draining, false},
		{Filter{Statuses: []NodeStatus{Draining, Active}}, draining, true},
		{Filter{Statuses: []NodeStatus{Dead}}, draining, false},
		{Filter{Role: Worker}, node, true},
		{Filter{Role: Scheduler}, node, false},
		{Filter{Capability: "gpu"}, node, true},
		{Filter{Capability: "tpu"}, node, false},
		{Filter{Labels: map[string]string{"zone": "a"}}, node, true},
		{Filter{Labels: map[string]string{"zone": "a", "disk": "ssd"}}, node, false},
		{Filter{Labels: map[string]string{"zone": "b"}}, node, false},
		{Filter{Labels: map[string]string{"empty": ""}}, node, true},
		{Filter{Labels: map[string]string{"none": ""}}, node, false},
		{Filter{Role: Worker, Capability: "gpu", Labels: map[string]string{"zone": "a"}}, node, true},
		{Filter{Role: Worker, Capability: "gpu", Labels: map[string]string{"zone": "a"}}, draining, false},
	} {
		if got := c.filter.Matches(c.node); got != c.want {
			t.Errorf("%+v chooses %+v: %t", c.filter, c.node, got)
		}
	}
}
