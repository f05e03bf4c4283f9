package tenure_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// summary returns the statuses and releases that a session received, in order.
func (c *conn) summary() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(c.calls), func(call string) bool {
		return call == "heartbeat" || call == "try"
	}), ", ")
}

// drain drains a node and returns the result when it is there.
func drain(ctx context.Context, node *tenure.Node) <-chan error {
	done := make(chan error, 1)
	go func() { done <- node.Drain(ctx, nil) }()
	synctest.Wait()
	return done
}

func undrain(t *testing.T, node *tenure.Node) {
	t.Helper()
	if err := node.Undrain(t.Context()); err != nil {
		t.Errorf("Undrain: %v", err)
	}
}

func TestDrainReleasesRolesUntilUndrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		rec.forget()
		wantError(t, "Drain", node.Drain(t.Context(), nil), nil)
		want(t, "leads after the drain", e.IsLeader(), false)
		want(t, "calls of a drain", db.last().summary(), "draining, release r stepped_down, drained")
		want(t, "events", rec.summary(), "leader>releasing releasing>follower released")
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		wantError(t, "Drain again", node.Drain(t.Context(), nil), nil)

		_, err := e.TryAcquire(t.Context())
		wantError(t, "TryAcquire", err, tenure.ErrNotActive)
		late, _ := node.Election(tenure.NamedRole("late"))
		wantError(t, "Start", late.Start(t.Context()), nil)
		time.Sleep(time.Minute)
		want(t, "leads while drained", e.IsLeader() || late.IsLeader(), false)

		undrain(t, node)
		synctest.Wait()
		want(t, "status", db.status(), "active")
		want(t, "leads again", e.IsLeader() && late.IsLeader(), true)
		undrain(t, node)
	})
}

func TestDrainHandsRolesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		own, _ := node.Election(tenure.NamedRole("own"))
		term, ownTerm := lead(t, e), lead(t, own)
		err := node.Drain(t.Context(), func(role string) uuid.UUID {
			if role == "own" {
				return node.ID() // a node does not hand over to itself
			}
			return uuid.New()
		})
		wantError(t, "Drain", err, nil)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrHandedOver)
		wantError(t, "cause", context.Cause(ownTerm.Context()), tenure.ErrSteppedDown)
		want(t, "handed over", db.last().count("release r handed_over"), 1)
	})
}

// A grant that arrives after the node has stopped campaigning is released.
func TestGrantDuringDrainIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		trying, resume := make(chan struct{}), make(chan struct{})
		db.last().set(func(c *conn) {
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				c.set(func(c *conn) { c.onAcquire = nil })
				close(trying)
				<-resume
				return nil
			}
		})
		e, rec := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		<-trying
		drained := drain(t.Context(), node)
		close(resume)
		wantError(t, "Drain", <-drained, nil)
		want(t, "held", db.holder("r") == nil, true)
		want(t, "events", rec.summary(), "stopped>follower follower>acquiring acquiring>follower acquire_failed")
		undrain(t, node)
		synctest.Wait()
		want(t, "leads again", e.IsLeader(), true)
	})
}

// The node is active again before the grant arrives: the attempt counts.
func TestGrantAfterUndrainBeginsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		trying, resume := make(chan struct{}), make(chan struct{})
		db.last().set(func(c *conn) {
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				c.set(func(c *conn) { c.onAcquire = nil })
				close(trying)
				<-resume
				return nil
			}
		})
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		<-trying
		drained := drain(t.Context(), node)
		back := make(chan error)
		go func() { back <- node.Undrain(t.Context()) }()
		synctest.Wait()
		close(resume)
		wantError(t, "Undrain", <-back, nil)
		wantError(t, "Drain", <-drained, tenure.ErrDrainCanceled)
		synctest.Wait()
		want(t, "leads after the drain was canceled", e.IsLeader(), true)
		want(t, "status", db.status(), "active")
	})
}

// waits makes the next attempts at the role keep the lock and wait.
func (c *conn) waits(role string, then func() *tenure.AcquireResult) {
	c.set(func(c *conn) {
		first := true
		c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
			if first {
				first = false
				c.db.mu.Lock()
				c.db.holders[role] = c
				c.db.mu.Unlock()
				return &tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Second}
			}
			return then()
		}
	})
}

// A pending lock is released once, with or without a call of TryAcquire in
// flight.
func TestDrainReleasesPendingRoleOnce(t *testing.T) {
	for name, asking := range map[string]bool{"between attempts": false, "in an attempt": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newRegistry()
				node := open(t, db)
				defer closeNode(t, node)
				resume := make(chan struct{})
				db.last().waits("r", func() *tenure.AcquireResult {
					<-resume
					return &tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: 7}
				})
				e, _ := elect(t, node, tenure.ElectionConfig{})
				wantError(t, "Start", e.Start(t.Context()), nil)
				synctest.Wait()
				if asking {
					time.Sleep(time.Second + time.Millisecond)
					synctest.Wait()
				}
				drained := drain(t.Context(), node)
				close(resume)
				wantError(t, "Drain", <-drained, nil)
				want(t, "the role is free", db.holder("r") == nil, true)
				want(t, "released", db.last().count("release r resigned"), 1)
				want(t, "sessions", db.opened, 1)
				db.last().set(func(c *conn) { c.onAcquire = nil })
				undrain(t, node)
				synctest.Wait()
				want(t, "leads again", e.IsLeader(), true)
			})
		})
	}
}

// An election that stops with a pending lock releases it once, even if the
// attempt in flight fails: the session has kept the lock then.
func TestShutdownReleasesPendingRoleOnce(t *testing.T) {
	for name, answer := range map[string]func(*conn) *tenure.AcquireResult{
		"granted": func(*conn) *tenure.AcquireResult {
			return &tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: 7}
		},
		"still waiting": func(*conn) *tenure.AcquireResult {
			return &tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Second}
		},
		"failing": func(c *conn) *tenure.AcquireResult {
			c.set(func(c *conn) { c.failAcquire = errors.New("disk full") })
			return &tenure.AcquireResult{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db)
				defer closeNode(t, node)
				resume := make(chan struct{})
				db.last().waits("r", func() *tenure.AcquireResult {
					<-resume
					return answer(db.last())
				})
				e, _ := elect(t, node, tenure.ElectionConfig{})
				wantError(t, "Start", e.Start(t.Context()), nil)
				time.Sleep(time.Second + time.Millisecond)
				synctest.Wait()
				stopped := make(chan error)
				go func() { stopped <- e.Shutdown(t.Context()) }()
				synctest.Wait()
				close(resume)
				select {
				case err := <-stopped:
					wantError(t, "Shutdown", err, nil)
				case <-time.After(time.Hour):
					t.Fatal("invariant 7: Shutdown does not release the role of an attempt in flight")
				}
				want(t, "the role is free", db.holder("r") == nil, true)
				want(t, "sessions", db.opened, 1)
			})
		})
	}
}

// The lock that a failed attempt left with the session is released when the
// election stops later.
func TestShutdownReleasesRoleOfFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		db.last().waits("r", func() *tenure.AcquireResult {
			db.last().set(func(c *conn) { c.failAcquire = errors.New("disk full") })
			return &tenure.AcquireResult{}
		})
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		want(t, "state", e.State(), tenure.Follower)
		want(t, "held", db.holder("r") != nil, true)
		wantError(t, "Shutdown", e.Shutdown(t.Context()), nil)
		want(t, "the role is free", db.holder("r") == nil, true)
		want(t, "sessions", db.opened, 1)
	})
}

// The session is lost during the last attempt of an election that stops.
func TestShutdownEndsWhenPendingRoleIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		resume := make(chan struct{})
		db.last().waits("r", func() *tenure.AcquireResult {
			<-resume
			return &tenure.AcquireResult{}
		})
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- e.Shutdown(t.Context()) }()
		synctest.Wait()
		db.last().set(func(c *conn) { c.failAcquire = errGone })
		close(resume)
		wantError(t, "Shutdown", <-stopped, nil)
	})
}

func TestDrainWhileReconnectingStopsCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{ReconnectGrace: 20 * time.Second})
		lead(t, e)
		db.refuseAll(errors.New("down"))
		db.last().kill()
		synctest.Wait()
		want(t, "state", e.State(), tenure.Reconnecting)
		drained := drain(t.Context(), node)
		select {
		case err := <-drained:
			t.Errorf("drained without a session: %v", err)
		default:
		}
		db.refuseAll(nil)
		wantError(t, "Drain", <-drained, nil)
		want(t, "status", db.status(), "drained")
		rec.forget()
		time.Sleep(30 * time.Second)
		want(t, "events", rec.summary(), "reconnecting>follower lost")
		undrain(t, node)
		synctest.Wait()
		want(t, "leads again", e.IsLeader(), true)
	})
}

// Work that does not return keeps its role and the drain waits. The drain
// continues after its caller has stopped waiting.
func TestDrainWaitsForStuckWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		other, _ := node.Election(tenure.NamedRole("other"))
		term := lead(t, e)
		lead(t, other)
		guard, _ := term.Guard()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := node.Drain(ctx, nil)
		wantError(t, "Drain with stuck work", err, tenure.ErrWorkRunning)
		wantError(t, "Drain", err, context.DeadlineExceeded)
		want(t, "the other role", db.holder("other") == nil, true)
		want(t, "held", db.holder("r") != nil, true)
		want(t, "status", db.status(), "draining")
		drained := drain(t.Context(), node)
		guard.Done()
		wantError(t, "Drain again", <-drained, nil)
		want(t, "status", db.status(), "drained")
	})
}

// Terms that were asked to end do end; the node is active again afterwards.
func TestUndrainCancelsDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		guard, _ := term.Guard()
		drained := drain(t.Context(), node)
		undrain(t, node)
		want(t, "the status is written", db.status(), "active")
		guard.Done()
		wantError(t, "Drain", <-drained, tenure.ErrDrainCanceled)
		want(t, "status", db.status(), "active")
		time.Sleep(2 * time.Second) // longer than stepDownPause
		want(t, "leads again after the drain was canceled", e.IsLeader(), true)
	})
}

// A drain that was canceled, and that still waits for work, does not report the next
// drain as finished: the node leads a role again.
func TestCanceledDrainDoesNotReportTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		other, _ := node.Election(tenure.NamedRole("other"))
		lead(t, e)
		slow, _ := lead(t, other).Guard()
		canceled := drain(t.Context(), node)
		undrain(t, node)
		guard, _ := lead(t, e).Guard()
		drained := drain(t.Context(), node)
		slow.Done()
		wantError(t, "the first drain", <-canceled, tenure.ErrDrainCanceled)
		synctest.Wait()
		want(t, "status, while it leads", db.status(), "draining")
		guard.Done()
		wantError(t, "the second drain", <-drained, nil)
		want(t, "status", db.status(), "drained")
	})
}

// A role that was lost with its session is free: the drain ends in the next
// session.
func TestDrainEndsInNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		db.last().set(func(c *conn) { c.onRelease = func() error { return errGone } })
		wantError(t, "Drain", node.Drain(t.Context(), nil), nil)
		want(t, "status", db.status(), "drained")
		want(t, "sessions", db.opened, 2)
		want(t, "leads", e.IsLeader(), false)
	})
}

func TestDrainWithoutSessionWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		db.refuseAll(errors.New("down"))
		db.last().kill()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := node.Drain(ctx, nil)
		wantError(t, "Drain", err, tenure.ErrShutdown)
		wantError(t, "Drain", err, context.DeadlineExceeded)
		db.refuseAll(nil)
		time.Sleep(10 * time.Second)
		want(t, "what was begun continued", db.status(), "drained")
	})
}

func TestCloseEndsDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		guard, _ := term.Guard()
		drained := drain(t.Context(), node)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			closeNode(t, node)
		}()
		synctest.Wait()
		guard.Done()
		<-closed
		if err := <-drained; err != nil && !errors.Is(err, tenure.ErrClosed) {
			t.Errorf("Drain: %v; want ErrClosed, or nil if it was first", err)
		}
		wantError(t, "Drain when closed", node.Drain(t.Context(), nil), tenure.ErrClosed)
	})
}

// A registry that does not answer does not prevent the release of the roles.
func TestDrainReleasesRolesWithoutRegistryAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		term, err := e.WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership", err, nil)
		resume := make(chan struct{})
		db.change(func(r *registry) {
			r.onDescribe = func() error {
				<-resume
				return nil
			}
		})
		begun := time.Now()
		drained := drain(t.Context(), node)
		<-term.Context().Done()
		want(t, "work ends after", time.Since(begun), node.Timing().RefreshInterval)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		close(resume)
		wantError(t, "Drain", <-drained, nil)
	})
}
