package tenure_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// Trust ends as soon as any call of the session reports its loss (Invariant 1:
// the locks may be free).
func TestSessionLossInAnyCallEndsTrust(t *testing.T) {
	for name, lose := range map[string]func(*database, *tenure.Node){
		"Heartbeat": func(db *database, node *tenure.Node) {
			db.last().set(func(c *conn) { c.onHeartbeat = func() error { return tenure.ErrSuperseded } })
			e := node.Elections()[0]
			_ = e.Refresh(context.Background())
		},
		"TryAcquire": func(db *database, node *tenure.Node) {
			db.last().set(func(c *conn) { c.failAcquire = tenure.ErrSuperseded })
			another, _ := node.Election(tenure.NamedRole("another"))
			_ = another.Start(context.Background())
		},
		"Release": func(db *database, node *tenure.Node) {
			db.last().set(func(c *conn) { c.onRelease = func() error { return errors.New("no answer") } })
			for _, e := range node.Elections() {
				if e.Role().Name() == "other" {
					_ = e.StepDown(context.Background())
				}
			}
		},
		"Requests": func(db *database, _ *tenure.Node) {
			db.last().set(func(c *conn) { c.onRequests = func() error { return tenure.ErrSuperseded } })
			db.wake()
		},
		"Wait": func(db *database, _ *tenure.Node) { db.last().kill() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db)
				defer closeNode(t, node)
				e, _ := elect(t, node, tenure.ElectionConfig{})
				other, _ := node.Election(tenure.NamedRole("other"))
				term := lead(t, e)
				lead(t, other)
				synctest.Wait()
				lose(db, node)
				synctest.Wait()
				if term.Valid() || term.Context().Err() == nil {
					t.Error("invariant 1: a term is trusted although its session is lost")
				}
				db.last().set(func(c *conn) { c.failAcquire = nil })
			})
		})
	}
}

// stop shuts an election down, for which it needs nothing of a lost session.
func stop(t *testing.T, e *tenure.Election) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Errorf("invariant 7: the election waits for the lock of a lost session: %v", err)
	}
}

// A role that is granted after its session has ended has no leader: the node
// campaigns again in its next session (Invariant 7).
func TestGrantOfLostSessionIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.prepare = func(c *conn) {
			if c.number == 1 {
				c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
					time.Sleep(time.Minute) // trust ends in that time
					return &tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: 7}
				}
			}
		}
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(context.Background()), nil)
		time.Sleep(2 * time.Minute)
		if !e.IsLeader() {
			t.Fatal("invariant 7: the node does not campaign after a grant that came too late")
		}
		want(t, "the term of the lost session", e.Term().Number() == 7, false)
		stop(t, e)
	})
}

// A pending attempt ends with its session and leaves no trace when the election
// starts again (Invariant 7).
func TestPendingAttemptEndsWithSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		db.last().locks("r", false)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(500 * time.Millisecond)
		db.mu.Lock()
		db.refuse = tenure.ErrConnection
		db.mu.Unlock()
		db.last().kill()
		synctest.Wait()
		stop(t, e)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantError(t, "Start", e.Start(ctx), nil)
		db.mu.Lock()
		db.refuse = nil
		db.mu.Unlock()
		if _, err := e.WaitForLeadership(ctx); err != nil {
			t.Errorf("invariant 7: the node does not campaign again: %v", err)
		}
	})
}

// A request for a role without an election on this node changes nothing.
func TestRequestForUnknownRoleChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "unknown"})
		time.Sleep(time.Minute)
		want(t, "the term of another role is valid", term.Valid(), true)
	})
}
