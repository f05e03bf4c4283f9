package tenure_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

func TestNoLeaderNodeOnlyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db, func(c *tenure.Config) { c.NoLeader = true })
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(time.Minute)
		want(t, "state", e.State(), tenure.Follower)
		want(t, "attempts", db.last().count("try"), 0)
		_, err := e.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, tenure.ErrNotActive)

		other := open(t, db)
		defer closeNode(t, other)
		leading, _ := elect(t, other, tenure.ElectionConfig{})
		term := lead(t, leading)
		leader, err := e.Leader(t.Context())
		wantError(t, "Leader", err, nil)
		want(t, "leader", leader.Term, term.Number())
	})
}

// A node campaigns while it has the labels that the election requires, and steps
// down when it loses one.
func TestElectionRequiresLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db, func(c *tenure.Config) {
			c.Description.Labels = map[string]string{"zone": "a"}
		})
		defer closeNode(t, node)
		label := func(labels map[string]string) {
			t.Helper()
			wantError(t, "UpdateDescription", node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Labels = labels }), nil)
			synctest.Wait()
		}
		e, _ := elect(t, node, tenure.ElectionConfig{Requires: map[string]string{"zone": "a", "disk": "ssd"}})
		wantError(t, "Start", e.Start(t.Context()), nil)
		free, err := node.Election(tenure.NamedRole("free"))
		wantError(t, "Election", err, nil)
		wantError(t, "Start", free.Start(t.Context()), nil)
		time.Sleep(time.Minute)
		want(t, "leads without the label", e.IsLeader(), false)
		want(t, "leads the role that requires nothing", free.IsLeader(), true)
		_, err = e.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, tenure.ErrNotActive)

		label(map[string]string{"zone": "a", "disk": "ssd", "more": "x"})
		term := lead(t, e)
		label(map[string]string{"zone": "b", "disk": "ssd"})
		want(t, "leads after the label changed", e.IsLeader(), false)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrNotActive)
		time.Sleep(time.Minute)
		want(t, "state", e.State(), tenure.Follower)
		want(t, "leads the role that requires nothing", free.IsLeader(), true)

		label(map[string]string{"zone": "a", "disk": "ssd"})
		want(t, "leads again", e.IsLeader(), true)
	})
}

// An attempt that holds the lock while its term cannot begin yet gives the lock up
// when the node loses a required label.
func TestLostLabelCancelsPendingAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db, func(c *tenure.Config) {
			c.Description.Labels = map[string]string{"zone": "a"}
		})
		defer closeNode(t, node)
		db.last().waits("r", func() *tenure.AcquireResult { return nil })
		e, _ := elect(t, node, tenure.ElectionConfig{Requires: map[string]string{"zone": "a"}})
		wantError(t, "Start", e.Start(t.Context()), nil)
		synctest.Wait()
		want(t, "state", e.State(), tenure.Acquiring)
		wantError(t, "UpdateDescription", node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Labels = nil }), nil)
		synctest.Wait()
		want(t, "state", e.State(), tenure.Follower)
		want(t, "releases", db.last().count("release r resigned"), 1)
	})
}

// A node campaigns while it has the node role that the election requires, and steps
// down when it loses it.
func TestElectionRequiresNodeRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db, func(c *tenure.Config) { c.Description.Roles = []string{"worker"} })
		defer closeNode(t, node)
		become := func(roles ...string) {
			t.Helper()
			wantError(t, "UpdateDescription", node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Roles = roles }), nil)
			synctest.Wait()
		}
		e, _ := elect(t, node, tenure.ElectionConfig{RequiresNodeRole: "scheduler"})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(time.Minute)
		want(t, "leads without the node role", e.IsLeader(), false)
		_, err := e.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, tenure.ErrNotActive)

		become("worker", "scheduler")
		term := lead(t, e)
		become("worker")
		want(t, "leads after the node role was removed", e.IsLeader(), false)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrNotActive)
		time.Sleep(time.Minute)
		want(t, "state", e.State(), tenure.Follower)

		become("scheduler")
		want(t, "leads again immediately", e.IsLeader(), true)
	})
}

// An attempt that holds the lock while its term cannot begin yet gives the lock up
// when the node loses the required node role.
func TestLostNodeRoleCancelsPendingAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db, func(c *tenure.Config) { c.Description.Roles = []string{"scheduler"} })
		defer closeNode(t, node)
		db.last().waits("r", func() *tenure.AcquireResult { return nil })
		e, _ := elect(t, node, tenure.ElectionConfig{RequiresNodeRole: "scheduler"})
		wantError(t, "Start", e.Start(t.Context()), nil)
		synctest.Wait()
		want(t, "state", e.State(), tenure.Acquiring)
		wantError(t, "UpdateDescription", node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.Roles = nil }), nil)
		synctest.Wait()
		want(t, "state", e.State(), tenure.Follower)
		want(t, "releases", db.last().count("release r resigned"), 1)
	})
}
