package cluster_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMembersSeeOthersJoinAndLeave(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	b := site.join("b", cluster.Config{
		Address: "10.1.2.3", HTTPPort: 8080, GRPCPort: 9090, Roles: []cluster.NodeRole{cluster.Worker, "encoder"},
		Capabilities: []string{"gpu"}, Labels: map[string]string{"zone": "b"}, Version: "v1.2.3",
	})
	a.seesStatus(b.ID(), cluster.Active)
	nodes := a.Nodes()
	i := slices.IndexFunc(nodes, func(n cluster.NodeInfo) bool { return n.ID == b.ID() })
	got := nodes[i]
	if got.Name != "b" || got.Address != "10.1.2.3" || got.HTTPPort != 8080 || got.GRPCPort != 9090 || got.Version != "v1.2.3" ||
		!got.HasRole(cluster.Worker) || !got.HasRole("encoder") || got.HasRole(cluster.Gateway) ||
		!got.HasCapability("gpu") || got.HasCapability("cpu") || got.Labels["zone"] != "b" ||
		got.StartedAt.IsZero() || got.LastHeartbeat.Before(got.StartedAt) || got.Hostname == "" {
		t.Errorf("a sees %+v", got)
	}
	if err := b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	a.sees(b.ID(), "gone", func(_ cluster.NodeInfo, there bool) bool { return !there })
}

func TestDeathIsSeenInMilliseconds(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b, c := site.join("a", cluster.Config{}), site.join("b", cluster.Config{}), site.join("c", cluster.Config{})
	for _, n := range []node{a, b} {
		n.seesStatus(c.ID(), cluster.Active)
	}
	a.seesStatus(b.ID(), cluster.Active)
	site.settle(a, b, c)
	begun := time.Now()
	c.store.kill()
	a.seesStatus(c.ID(), cluster.Dead)
	b.seesStatus(c.ID(), cluster.Dead)
	took := time.Since(begun)
	t.Logf("seen after %v", took)
	if took > 5*time.Second { // the lease would have taken 10 s
		t.Errorf("the death was seen after %v", took)
	}
}

func TestMemberRejoinsAfterLostSession(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(site, node){
		"killed by an administrator": func(s site, n node) {
			s.exec("SELECT pg_terminate_backend(pid) FROM "+s.table("nodes")+" WHERE id = $1", n.ID())
		},
		"removed by a foreign hand": func(s site, n node) {
			s.exec("DELETE FROM "+s.table("nodes")+" WHERE id = $1", n.ID())
		},
		"marked as dead by a foreign hand": func(s site, n node) {
			s.exec("UPDATE "+s.table("nodes")+" SET status = 'dead' WHERE id = $1", n.ID())
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "killed by an administrator" {
				pgtest.Long(t)
			}
			t.Parallel()
			site := newSite(t)
			a, b := site.join("a", cluster.Config{}, brief), site.join("b", cluster.Config{Version: "v7"}, brief)
			a.seesStatus(b.ID(), cluster.Active)
			var states []cluster.ChangeKind
			watch := a.Watch(within(t), cluster.Filter{})
			if first := receive(t, watch); first.Kind != cluster.Snapshot || len(first.Nodes) != 2 {
				t.Fatalf("first came %+v", first)
			}
			comeBack := b.store.hold() // changes that are read together would be merged
			defer comeBack()
			harm(site, b)
			for len(states) == 0 || states[len(states)-1] != cluster.Joined {
				change := receive(t, watch)
				if change.Node.ID != b.ID() {
					continue
				}
				states = append(states, change.Kind)
				if change.Kind == cluster.Left {
					comeBack()
				}
				if change.Kind == cluster.Joined && change.Node.Version != "v7" {
					t.Errorf("b came back as %+v", change.Node)
				}
			}
			if want := []cluster.ChangeKind{cluster.Left, cluster.Joined}; !slices.Equal(states, want) {
				t.Errorf("a saw of b %v, want %v", states, want)
			}
			// b's own view continues with its new session.
			b.seesStatus(a.ID(), cluster.Active)
		})
	}
}

func TestWatchSurvivesLostSession(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	watch := a.Watch(within(t), cluster.Filter{Capability: "later"})
	if first := receive(t, watch); first.Kind != cluster.Snapshot || len(first.Nodes) != 0 {
		t.Fatalf("first came %+v", first)
	}
	site.exec("SELECT pg_terminate_backend(pid) FROM "+site.table("nodes")+" WHERE id = $1", a.ID())
	b := site.join("b", cluster.Config{Capabilities: []string{"later"}})
	if change := receive(t, watch); change.Kind != cluster.Joined || change.Node.ID != b.ID() {
		t.Errorf("then came %+v", change)
	}
}

func TestSetStatusReachesOtherMembers(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	for _, status := range []cluster.NodeStatus{cluster.Draining, cluster.Active, cluster.Joining, cluster.Active} {
		if err := b.SetStatus(within(t), status); err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		a.seesStatus(b.ID(), status)
		if err := b.Ready(); (err == nil) != (status == cluster.Active) {
			t.Errorf("when it is %s, Ready says %v", status, err)
		}
		guard, accepted := b.InFlight().Enter()
		guard.Done()
		if accepted == (status == cluster.Draining) {
			t.Errorf("when it is %s, work is accepted: %t", status, accepted)
		}
	}
	for _, status := range []cluster.NodeStatus{cluster.Dead, "starting", ""} {
		if err := b.SetStatus(within(t), status); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("a member called itself %q: %v", status, err)
		}
	}
	if err := errors.Join(b.SetStatus(within(t), cluster.Draining), b.SetStatus(within(t), cluster.Joining)); err != nil {
		t.Fatal(err)
	}
	if status := b.Node().Description().Status; status != cluster.Draining {
		t.Errorf("a draining node became %s", status)
	}
}

func TestHeartbeatCarriesTheLoad(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	quick := cluster.Config{Heartbeat: cluster.HeartbeatConfig{Interval: 50 * time.Millisecond}}
	a := site.join("a", quick, brief)
	b := site.join("b", quick, brief, func(c *tenure.Config) {
		c.Load = func() tenure.Load { return tenure.Load{Jobs: 7} }
	})
	b.Heartbeat().UpdateLoad(tenure.Load{Connections: 12, Jobs: 1, CPU: 55})
	guard, _ := b.InFlight().Enter()
	defer guard.Done()
	a.seesLoad(b.ID(), "busy", func(info cluster.NodeInfo, _ bool) bool {
		return info.CurrentConnections == 12 && info.CurrentJobs == 7 && info.CPUUsage == 55 && info.MemoryUsage > 0 && info.InFlight == 1
	})
	if !b.Heartbeat().IsRunning() {
		t.Error("the loop does not run")
	}
	if err := b.Heartbeat().Run(within(t)); err == nil {
		t.Error("the loop ran twice")
	}
	b.Heartbeat().Stop()
	b.Heartbeat().Stop()
	if b.Heartbeat().IsRunning() {
		t.Error("the loop runs after Stop")
	}
}
