package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// nodeLockSpace is the first part of the lock keys of the nodes of installation i.
const nodeLockSpace = `('x' || encode(substr(sha256(uuid_send(i.id) || 'nodes'), 1, 4), 'hex'))::bit(32)::int`

// plant writes the row of a node whose last heartbeat was some time ago although its
// session is open: a lock shows that to the other nodes until the test ends.
func (s site) plant(name string, status cluster.NodeStatus, silentFor time.Duration) cluster.NodeID {
	s.t.Helper()
	id, session := cluster.NewNodeID(), pgtest.Conn(s.t, s.dsn)
	var incarnation int
	err := session.QueryRow(s.t.Context(), `
SELECT n
FROM nextval('`+s.table("incarnations")+`') n, `+s.table("installation")+` i,
	pg_advisory_lock(`+nodeLockSpace+`, n::int)`).Scan(&incarnation)
	if err != nil {
		s.t.Fatal(err)
	}
	s.exec(`
INSERT INTO `+s.table("nodes")+` (id, incarnation, name, hostname, lease_ms, pid, backend_start, status, last_heartbeat)
VALUES ($1, $2, $3, 'gone', 2000, 0, now(), $4, clock_timestamp() - $5 * interval '1 ms')`,
		id, incarnation, name, string(status), silentFor.Milliseconds())
	return id
}

// end ends the session of a node that was planted.
func (s site) end(id cluster.NodeID) {
	s.t.Helper()
	s.exec(`
SELECT pg_terminate_backend(l.pid, 10000)
FROM pg_locks l
JOIN `+s.table("nodes")+` n ON n.incarnation = l.objid::bigint
JOIN `+s.table("installation")+` i ON l.classid = `+nodeLockSpace+`::oid
WHERE n.id = $1 AND l.locktype = 'advisory' AND l.objsubid = 2 AND l.mode = 'ExclusiveLock'`, id)
}

func TestRegistryReadsNodes(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{Name: "prod", Heartbeat: cluster.HeartbeatConfig{SkipMarkingDead: true}})
	drained := site.join("drained", cluster.Config{Heartbeat: cluster.HeartbeatConfig{SkipMarkingDead: true}})
	joining := site.join("joining", cluster.Config{MinNodes: 10, Heartbeat: cluster.HeartbeatConfig{SkipMarkingDead: true}})
	if err := drained.SetStatus(within(t), cluster.Draining); err != nil {
		t.Fatal(err)
	}
	marked := site.plant("marked", cluster.Dead, time.Hour)
	silent := site.plant("silent", cluster.Active, 3*time.Second) // longer than its lease
	registry := a.Registry()

	counts, err := registry.Counts(within(t))
	if want := (cluster.NodeCounts{Active: 1, Draining: 1, Dead: 2, Joining: 1, Total: 5}); err != nil || counts != want {
		t.Errorf("the counts are %+v, %v; want %+v", counts, err, want)
	}
	for status, want := range map[cluster.NodeStatus][]cluster.NodeID{
		cluster.Active: {a.ID()}, cluster.Draining: {drained.ID()}, cluster.Joining: {joining.ID()}, cluster.Dead: {marked, silent},
	} {
		nodes, err := registry.NodesByStatus(within(t), status)
		if err != nil || len(nodes) != len(want) {
			t.Errorf("%s are %+v, %v; want %v", status, nodes, err, want)
			continue
		}
		for _, node := range nodes {
			if node.Status != status || node.ID != want[0] && node.ID != want[len(want)-1] {
				t.Errorf("among those that are %s is %s, %s", status, node.Name, node.Status)
			}
		}
	}
	active, err := registry.ActiveNodes(within(t))
	if err != nil || len(active) != 1 || active[0].ID != a.ID() {
		t.Errorf("active are %+v, %v", active, err)
	}
	one, err := registry.Node(within(t), drained.ID())
	if err != nil || one.Name != "drained" || one.Status != cluster.Draining {
		t.Errorf("one node is %+v, %v", one, err)
	}

	info, err := registry.Info(within(t))
	want := cluster.ClusterInfo{Name: "prod", TotalNodes: 5, ActiveNodes: 1, DrainingNodes: 1, DeadNodes: 2}
	if err != nil || info != want {
		t.Errorf("the cluster is %+v, %v; want %+v", info, err, want)
	}
	election, err := a.Node().Election(cluster.SchedulerRole)
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := election.WaitForLeadership(within(t)); err != nil {
		t.Fatal(err)
	}
	if info, err = registry.Info(within(t)); err != nil || info.SchedulerLeader == nil || *info.SchedulerLeader != a.ID() {
		t.Errorf("the scheduler's leader is %v, %v; want %s", info.SchedulerLeader, err, a.ID())
	}
}

func TestRegistryNeedsNoMember(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	registry := cluster.NewRegistry(site.store())
	if _, err := registry.Nodes(within(t)); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("before there is a schema: %v", err)
	}
	a := site.join("a", cluster.Config{})
	nodes, err := registry.Nodes(within(t))
	if err != nil || len(nodes) != 1 || nodes[0].ID != a.ID() {
		t.Errorf("the nodes are %+v, %v", nodes, err)
	}
	if info, err := registry.Info(within(t)); err != nil || info.Name != "default" {
		t.Errorf("the cluster is %+v, %v", info, err)
	}
}

func TestRegistryMarksAndForgetsDeadNodes(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{Heartbeat: cluster.HeartbeatConfig{SkipMarkingDead: true}})
	registry := a.Registry()
	old := site.plant("old", cluster.Active, time.Hour)
	recent := site.plant("recent", cluster.Active, time.Minute)
	site.plant("alive", cluster.Active, time.Second) // within its lease

	marked, err := registry.MarkDead(within(t), 10*time.Minute)
	if err != nil || len(marked) != 1 || marked[0] != old {
		t.Errorf("marked were %v, %v; want %s", marked, err, old)
	}
	// Less than the lease of a node is no threshold.
	if marked, err = registry.MarkDead(within(t), 0); err != nil || len(marked) != 1 || marked[0] != recent {
		t.Errorf("then marked were %v, %v; want %s", marked, err, recent)
	}
	// A node stays as long as the server keeps its session.
	removed, err := registry.ForgetDead(within(t), 10*time.Minute)
	if err != nil || len(removed) != 0 {
		t.Errorf("removed were %v, %v; want none while the session lasts", removed, err)
	}
	site.end(old)
	removed, err = registry.ForgetDead(within(t), 10*time.Minute)
	if err != nil || len(removed) != 1 || removed[0] != old {
		t.Errorf("removed were %v, %v; want %s", removed, err, old)
	}
	if err := registry.Forget(within(t), recent); err != nil {
		t.Errorf("forgetting a dead node: %v", err)
	}
	err = registry.Forget(within(t), a.ID())
	if !errors.Is(err, tenure.ErrUnknownNode) || !strings.Contains(err.Error(), "(a) is active: only a dead node can be forgotten") {
		t.Errorf("forgetting a living node: %v", err)
	}
	if err := registry.Forget(within(t), recent); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("forgetting a node twice: %v", err)
	}
	for name, err := range map[string]error{
		"mark dead": second(registry.MarkDead(within(t), -1)),
		"clean up":  second(registry.ForgetDead(within(t), -1)),
	} {
		if !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s with a negative time: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestUnknownNodeErrorSuggestsNodes(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		site.join(name, cluster.Config{})
	}
	e := site.join("e", cluster.Config{})
	mistyped := e.ID()
	mistyped[0] ^= 1
	_, err := e.Registry().Node(within(t), mistyped)
	if !errors.Is(err, tenure.ErrUnknownNode) || !strings.Contains(err.Error(), "the most similar of 5: "+e.ID().String()+" (e, active), ") {
		t.Errorf("of an unknown node: %v", err)
	}
}

func TestHeartbeatLoopMarksSilentNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{Heartbeat: cluster.HeartbeatConfig{
		Interval: 20 * time.Millisecond, DeadThreshold: time.Minute,
	}}, func(c *tenure.Config) { c.Lease, c.CheckInterval = 2*time.Second, 500*time.Millisecond })
	long := site.plant("long", cluster.Active, 2*time.Minute)
	short := site.plant("short", cluster.Active, 10*time.Second) // longer than its lease only
	marked := testkit.Receive(t, a.store.marked, patience, "a silent node was not marked")
	if len(marked) != 1 || marked[0] != long {
		t.Errorf("marked were %v; want %s, and not %s", marked, long, short)
	}
	a.seesStatus(short, cluster.Dead) // nevertheless: its lease is over
}
