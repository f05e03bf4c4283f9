package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

func TestCampaignReturnsOneTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{ReconnectGrace: time.Minute})
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, "state", e.State(), tenure.Stopped)
		want(t, "released", db.last().count("release r resigned"), 1)

		term, _ = e.Campaign(t.Context())
		rec.forget()
		db.last().kill()
		<-term.Context().Done()
		want(t, "one term only", rec.summary(), "leader>stopped lost stopped")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Campaign(ctx)
		wantError(t, "Campaign before the work has returned", err, context.DeadlineExceeded)
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		db.seize("r")
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = e.Campaign(ctx)
		wantError(t, "Campaign against another", err, context.DeadlineExceeded)
		want(t, "state", e.State(), tenure.Stopped)
	})
}

func TestTryAcquireMakesOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		db.seize("r")
		_, err := e.TryAcquire(t.Context())
		wantError(t, "held", err, tenure.ErrHeld)
		want(t, "state", e.State(), tenure.Stopped)
		_ = e.Start(context.Background())
		_, err = e.TryAcquire(t.Context())
		wantError(t, "held", err, tenure.ErrHeld)
		want(t, "state", e.State(), tenure.Follower)
		db.mu.Lock()
		delete(db.holders, "r")
		db.mu.Unlock()
		term, err := e.TryAcquire(t.Context())
		if err != nil || !term.Valid() {
			t.Errorf("vacant: %v", err)
		}
		if err := e.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, "remaining", term.Remaining(), 9*time.Second)
		time.Sleep(time.Second)
		want(t, "remaining", term.Remaining(), 8*time.Second)
		want(t, "vacant before", term.PrecedingVacancy(), 3*time.Second)
		want(t, "elections", node.Elections()[0], e)
		leader, err := e.Leader(t.Context())
		if err != nil || !leader.Valid() || leader.NodeID != node.ID() {
			t.Errorf("Leader: %+v, %v", leader, err)
		}
		healthy, err := e.LeaderHealthy(t.Context())
		want(t, "healthy", healthy, true)
		want(t, "error", err, nil)
	})
}

// TestTryAcquireReturnsCauseOfFailure: the attempt can fail, and stop the election, before
// TryAcquire waits for it.
func TestTryAcquireReturnsCauseOfFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		db := newDatabase()
		db.prepare = func(c *conn) {
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				return &tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: broken}
			}
		}
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{NoReacquire: true})
		for range 1000 {
			_, err := e.TryAcquire(t.Context())
			if !errors.Is(err, broken) {
				t.Fatalf("TryAcquire: got error %v, want %v", err, broken)
			}
		}
		_ = e.Start(t.Context())
		_, err := e.WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership says why the attempt failed", err, broken)
		wantError(t, "Run", e.Run(t.Context(), func(context.Context, *tenure.Term) error { return nil }), broken)
		_, err = e.Campaign(t.Context())
		wantError(t, "Campaign", err, broken)
		db.last().set(func(c *conn) { c.failAcquire = errGone })
		err = e.Run(t.Context(), func(context.Context, *tenure.Term) error { return nil })
		wantError(t, "Run on a session that ends", err, tenure.ErrConnection)
	})
}

// TestTryAcquireReturnsTermOrError: an attempt fails, and a term begins and ends
// before TryAcquire wakes. It continues until it has something to return.
func TestTryAcquireReturnsTermOrError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *tenure.Election
		missed := func(tenure.Role) *tenure.AcquireResult {
			time.Sleep(time.Second) // TryAcquire waits
			tenure.EndAttempts(e)
			time.Sleep(time.Second) // TryAcquire sees that
			return nil
		}
		db := newDatabase()
		db.prepare = func(c *conn) { c.onAcquire = missed }
		node := open(t, db)
		defer closeNode(t, node)
		e, _ = elect(t, node, tenure.ElectionConfig{})
		term, err := e.TryAcquire(t.Context())
		if err != nil || term == nil || !term.Valid() {
			t.Errorf("%v, %v; want a term", term, err)
		}
	})
}

// A role that a living session leads does not become vacant without another
// notification, so it is tried once, and not with each quick retry.
func TestLedRoleIsTriedOnceAfterNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		var tried atomic.Int64
		db.prepare = func(c *conn) {
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				tried.Add(1)
				return &tenure.AcquireResult{Outcome: tenure.OutcomeHeld, Led: true}
			}
		}
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(context.Background()), nil)
		time.Sleep(time.Second)
		before := tried.Load()
		for range 3 {
			db.mu.Lock()
			db.notifyLocked()
			db.mu.Unlock()
			time.Sleep(time.Second)
		}
		want(t, "attempts after three notifications", tried.Load(), before+3)
		wantError(t, "Shutdown", e.Shutdown(t.Context()), nil)
	})
}

func TestNotificationStartsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.seize("r")
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		_ = e.Start(context.Background())
		time.Sleep(time.Second)
		begun := time.Now()
		db.free("r")
		_, _ = e.WaitForLeadership(t.Context())
		want(t, "after a notification", time.Since(begun), time.Duration(0))
		_ = e.Shutdown(t.Context())

		// A lost notification costs at most a check interval.
		db.seize("r")
		_ = e.Start(context.Background())
		synctest.Wait()
		db.mu.Lock()
		delete(db.holders, "r")
		db.mu.Unlock()
		begun = time.Now()
		_, _ = e.WaitForLeadership(t.Context())
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("without a notification it took %v", took)
		}

		// A lock that is released a little after the notification.
		_ = e.Shutdown(t.Context())
		db.seize("r")
		_ = e.Start(context.Background())
		time.Sleep(time.Second)
		rec.forget()
		db.mu.Lock()
		db.notifyLocked()
		db.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		want(t, "one attempt, not a failure for each quick retry", rec.summary(), "follower>acquiring")
		db.mu.Lock()
		delete(db.holders, "r")
		db.mu.Unlock()
		begun = time.Now()
		_, _ = e.WaitForLeadership(t.Context())
		if took := time.Since(begun); took > 20*time.Millisecond {
			t.Errorf("a lock freed late was taken after %v", took)
		}
	})
}

// An election that starts because a node has died also acquires a lock that the
// dying session releases a little later.
func TestStartAfterNotificationRetriesQuickly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.seize("r")
		node := open(t, db)
		defer closeNode(t, node)
		time.Sleep(time.Minute)
		db.mu.Lock()
		db.notifyLocked()
		db.mu.Unlock()
		time.Sleep(20 * time.Millisecond)

		e, _ := elect(t, node, tenure.ElectionConfig{})
		_ = e.Start(context.Background())
		time.Sleep(40 * time.Millisecond)
		db.mu.Lock()
		delete(db.holders, "r")
		db.mu.Unlock()
		freed := time.Now()
		_, _ = e.WaitForLeadership(t.Context())
		if took := time.Since(freed); took > 150*time.Millisecond {
			t.Errorf("a lock freed %v after the start was taken after %v", 40*time.Millisecond, took)
		}
	})
}

// What another caller has started does not stop when an attempt of TryAcquire fails.
func TestFailedTryAcquireStopsOnlyWhatItStarted(t *testing.T) {
	t.Run("Start during the attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			db.seize("r")
			node := open(t, db)
			defer closeNode(t, node)
			answer := make(chan struct{})
			db.last().set(func(c *conn) { c.onAcquire = func(tenure.Role) *tenure.AcquireResult { <-answer; return nil } })
			e, _ := elect(t, node, tenure.ElectionConfig{})
			tried := make(chan error)
			go func() {
				_, err := e.TryAcquire(t.Context())
				tried <- err
			}()
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			wantError(t, "Start", e.Start(ctx), nil)
			close(answer)
			wantError(t, "TryAcquire", <-tried, tenure.ErrHeld)
			synctest.Wait()
			want(t, "state of the run of another caller", e.State(), tenure.Follower)
			db.free("r")
			synctest.Wait()
			want(t, "leads", e.IsLeader(), true)
			cancel()
			synctest.Wait()
			want(t, "state after the end of the context of Start", e.State(), tenure.Stopped)
		})
	})
	t.Run("Run after Shutdown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			db.seize("r")
			node := open(t, db)
			defer closeNode(t, node)
			e, _ := elect(t, node, tenure.ElectionConfig{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			again := &slowContext{Context: t.Context(), pause: func() { // while TryAcquire begins to wait
				wantError(t, "Shutdown", e.Shutdown(t.Context()), nil)
				go func() {
					ended <- e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil })
				}()
				time.Sleep(time.Minute)
			}}
			_, err := e.TryAcquire(again)
			wantError(t, "TryAcquire", err, tenure.ErrHeld)
			synctest.Wait()
			want(t, "state of the run of another caller", e.State(), tenure.Follower)
			db.free("r")
			synctest.Wait()
			want(t, "leads", e.IsLeader(), true)
			cancel()
			wantError(t, "Run", <-ended, nil)
		})
	})
}

// slowContext is a context whose method Done takes long when it is called first.
type slowContext struct {
	context.Context
	once  sync.Once
	pause func()
}

func (c *slowContext) Done() <-chan struct{} {
	c.once.Do(c.pause)
	return c.Context.Done()
}

// The calls of a node request its roles in their order, also if there are more than one
// call may have.
func TestBatchHasTheFirstRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newRegistry()
		node := open(t, db)
		defer closeNode(t, node)
		var requested []string
		db.last().set(func(c *conn) {
			c.onAcquire = func(role tenure.Role) *tenure.AcquireResult {
				requested = append(requested, role.Name())
				return nil
			}
		})
		wantError(t, "Drain", node.Drain(t.Context(), nil), nil)
		const roles = 3000 // a call has at most 1000
		for i := range roles {
			e, err := node.Election(tenure.NamedRole(fmt.Sprintf("r/%04d", (i*7)%roles)))
			wantError(t, "Election", err, nil)
			wantError(t, "Start", e.Start(context.Background()), nil)
		}
		undrain(t, node)
		synctest.Wait()
		want(t, "requested roles", len(requested), roles)
		want(t, "the roles were requested in their order", slices.IsSorted(requested), true)
		want(t, "calls", db.last().count("try"), 3)
	})
}
