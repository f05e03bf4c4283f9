package tenuretest_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

func statuses(t *testing.T, db *tenuretest.Database) (all []tenure.NodeStatus) {
	t.Helper()
	members, err := db.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		all = append(all, m.Status)
	}
	return all
}

func TestRegistryListsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{}).Node()
		b := campaign(t, db, "b", role, tenure.Config{}).Node()
		db.Occupy(tenure.NamedRole("another")) // by a stranger, who is no node
		for _, n := range []*tenure.Node{a, b} {
			members, err := n.Members(t.Context())
			if err != nil || len(members) != 2 || members[0].Name != "a" || members[1].Name != "b" {
				t.Errorf("node %s reads %+v, error %v", n.Name(), members, err)
			}
		}

		err := a.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Labels = map[string]string{"zone": "x"} })
		if err != nil {
			t.Fatal(err)
		}
		members, err := db.Members(t.Context())
		if err != nil || members[0].Labels["zone"] != "x" || members[0].Status != tenure.StatusActive {
			t.Errorf("%+v, error %v; want the label", members, err)
		}
		members[0].Labels["zone"] = "y" // what was read is the reader's
		if again, _ := db.Members(t.Context()); again[0].Labels["zone"] != "x" {
			t.Error("who reads the registry can write it")
		}

		if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: a.ID()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := a.Description(); got.Status != tenure.StatusDraining || !got.Drained {
			t.Errorf("a node that was asked to drain: %+v", got)
		}
		if got := statuses(t, db); !slices.Equal(got, []tenure.NodeStatus{tenure.StatusDraining, tenure.StatusActive}) {
			t.Errorf("the registry says %v", got)
		}
		if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: b.ID()}); !errors.Is(err, tenure.ErrLastNode) {
			t.Errorf("drain of the last node: %v; want ErrLastNode", err)
		}
	})
}

// A session that ends is that of a dead node until the node is forgotten.
func TestEndedSessionIsDeadUntilForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		dead, living := connect(t, db), connect(t, db)
		members, err := db.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := members[0].ID
		if err := db.Forget(t.Context(), id); !errors.Is(err, tenure.ErrUnknownNode) {
			t.Errorf("forgetting a node that lives: %v; want ErrUnknownNode", err)
		}
		dead.Abort()
		if _, err := living.Heartbeat(tenure.Load{}); err != nil {
			t.Fatal(err)
		}
		if got := statuses(t, db); len(got) != 2 || got[0] != tenure.StatusDead {
			t.Errorf("the registry says %v; want the first one dead", got)
		}
		time.Sleep(lease / 2)
		if gone, err := db.ForgetDead(t.Context(), time.Hour); err != nil || len(gone) > 0 {
			t.Errorf("forgotten before its time: %v, error %v", gone, err)
		}
		if gone, err := db.ForgetDead(t.Context(), lease/4); err != nil || !slices.Equal(gone, []uuid.UUID{id}) {
			t.Errorf("forgotten: %v, error %v; want %v", gone, err, id)
		}
		if err := db.Forget(t.Context(), id); !errors.Is(err, tenure.ErrUnknownNode) {
			t.Errorf("forgetting a node a second time: %v; want ErrUnknownNode", err)
		}
	})
}

// A node without a heartbeat for longer than the threshold is dead, but not
// before its lease is over.
func TestMarkDeadWaitsForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		s := connect(t, db)
		mark := func(threshold time.Duration, want int) {
			t.Helper()
			if dead, err := db.MarkDead(t.Context(), threshold); err != nil || len(dead) != want {
				t.Errorf("marked as dead: %v, error %v; want %d", dead, err, want)
			}
		}
		for range 3 { // every statement renews the lease, but only a heartbeat counts as one
			time.Sleep(lease / 2)
			mark(2*lease, 0)
			if _, err := s.TryAcquire([]tenure.AcquireRequest{{Role: role}}); err != nil {
				t.Fatal(err)
			}
		}
		mark(2*lease, 0)
		mark(lease/4, 1)
		mark(lease/4, 0)
		if got := statuses(t, db); !slices.Equal(got, []tenure.NodeStatus{tenure.StatusDead}) {
			t.Errorf("the registry says %v; want the node dead", got)
		}
		if _, err := s.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSessionLost) {
			t.Errorf("heartbeat of a node that is marked as dead: %v; want ErrSessionLost", err)
		}
	})
}
