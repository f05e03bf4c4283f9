package tenure_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// Each test here breaks when the line of the engine does that keeps the
// invariant, and says which one.

// Once trust has ended, the session must not send anything: a statement would
// restart the server's idle timer and keep the lock (Invariant 7).
func TestNothingIsSentAfterTrustEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		c := db.last()
		want(t, "may send while trusted", c.options.MaySend(), true)
		c.set(func(c *conn) {
			c.onHeartbeat = func() error {
				<-term.Context().Done() // an answer that comes too late
				return nil
			}
		})
		<-term.Context().Done()
		if c.options.MaySend() {
			t.Error("invariant 7: the session may send although its trust has ended")
		}
		time.Sleep(time.Minute)
		if c.options.MaySend() {
			t.Error("invariant 7: the session may send again although its trust has ended")
		}
	})
}

// A late acknowledgment does not revive trust (Invariant 1).
func TestLateHeartbeatDoesNotReviveTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		c := db.last()
		answer := make(chan struct{})
		c.set(func(c *conn) {
			c.onHeartbeat = func() error {
				<-answer
				return nil
			}
		})
		time.Sleep(9*time.Second + time.Nanosecond) // lease 10 s, margin 1 s
		if term.Valid() {
			t.Fatal("invariant 1: the term is trusted beyond lease - margin after the last acknowledged heartbeat")
		}
		close(answer)
		for range 100 {
			synctest.Wait()
			if term.Valid() || e.IsLeader() && e.Term() == term {
				t.Fatal("invariant 1: a late answer revived trust that had ended")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if !c.wasAborted() {
			t.Error("invariant 1: the session of a trust that has ended was kept")
		}
	})
}

// A node does not campaign for a role while its own work of an earlier term
// still runs (Invariant 4).
func TestNoAttemptWhileOldWorkRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working, campaigned atomic.Bool
		db := newDatabase()
		db.prepare = func(c *conn) {
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				if working.CompareAndSwap(false, true) {
					return nil
				}
				campaigned.Store(true)
				time.Sleep(time.Hour) // an engine that does this may do it without a pause
				return &tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
			}
		}
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		started, finish := make(chan struct{}, 8), make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() {
			ran <- e.Run(ctx, func(context.Context, *tenure.Term) error {
				started <- struct{}{}
				<-finish // it ignores the end of its context
				return nil
			})
		}()
		<-started
		time.Sleep(time.Minute) // while it leads
		db.last().kill()
		time.Sleep(time.Minute) // and after its term
		want(t, "incarnation that counts as ended while its work runs", db.last().options.PreviousIncarnation, int64(0))
		if campaigned.Load() {
			t.Error("invariant 4: the node campaigned while the work of its last term still ran")
		}
		working.Store(false)
		close(finish)
		<-started
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		closeNode(t, node)
	})
}

// The end of trust cancels the contexts of terms without the engine's mutex, so
// nothing else in the engine can delay it (Invariant 1).
func TestContextsEndWithoutMutex(t *testing.T) {
	t.Parallel()
	db := newDatabase()
	node := open(t, db, short)
	defer closeNode(t, node)
	e, _ := elect(t, node, tenure.ElectionConfig{})
	term := lead(t, e)
	release := tenure.HoldMutex(node)
	defer release()
	awaitEnd(t, term)
	wantError(t, "cause", context.Cause(term.Context()), tenure.ErrTrustExpired)
	want(t, "leader", e.IsLeader(), false)
	want(t, "may send", db.last().options.MaySend(), false)
}

// holdWhileIdle holds the node's mutex while its session waits, and nothing that happened
// before will end the wait.
func holdWhileIdle(node *tenure.Node, c *conn) (release func()) {
	for {
		release := tenure.HoldMutex(node)
		c.mu.Lock()
		idle := c.idle != nil && c.idle()
		c.mu.Unlock()
		if idle {
			return release
		}
		release()
		runtime.Gosched()
	}
}

// The loss of the session cancels them without the mutex, too.
func TestContextsEndWithSessionWithoutMutex(t *testing.T) {
	t.Parallel()
	db := newDatabase()
	node := open(t, db, func(c *tenure.Config) { c.Lease = time.Hour })
	defer closeNode(t, node)
	e, _ := elect(t, node, tenure.ElectionConfig{})
	term := lead(t, e)
	release := holdWhileIdle(node, db.last())
	defer release()
	db.last().kill()
	awaitEnd(t, term)
	wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSessionLost)
}
