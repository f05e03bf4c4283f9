package tenure_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// locks makes every attempt at a role keep the lock and wait for the term. It
// takes time, so that an engine that tries without a pause does not stop the
// clock of the bubble.
func (c *conn) locks(role string, fenced bool) {
	c.set(func(c *conn) {
		c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
			time.Sleep(time.Millisecond)
			c.db.mu.Lock()
			defer c.db.mu.Unlock()
			c.db.holders[role] = c
			return &tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Second, Fenced: fenced}
		}
	})
}

// An attempt that waits for fenced transactions releases the lock after
// LockTimeout, and the next attempt gets a full LockTimeout (Invariant 7: a
// node that cannot begin its term does not keep the role from other
// candidates).
func TestLockTimeoutReleasesLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db) // LockTimeout 10 s, CheckInterval 5 s
		defer closeNode(t, node)
		c := db.last()
		c.locks("r", true)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		time.Sleep(5 * time.Second)
		wantError(t, "Start", e.Start(t.Context()), nil)
		// The release wakes the node, too: it tries again immediately.
		for n := range 3 {
			time.Sleep(9500 * time.Millisecond)
			want(t, "releases before LockTimeout", c.count("release r resigned"), n)
			time.Sleep(600 * time.Millisecond)
			if c.count("release r resigned") != n+1 {
				t.Fatal("invariant 7: an attempt kept the lock for longer than LockTimeout")
			}
			wantError(t, "the failure", rec.errorOf(tenure.EventAcquireFailed), tenure.ErrLockTimeout)
			rec.forget()
		}
	})
}

// LockTimeout does not bound the wait for Settle or after a server change: a
// node that gave up would begin that wait again (Invariant 7).
func TestLockTimeoutBoundsOnlyFencedTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		c := db.last()
		c.locks("r", false)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(time.Minute)
		want(t, "the lock is held", db.holder("r") == c, true)
		c.locks("r", true) // LockTimeout counts from here
		time.Sleep(10 * time.Second)
		want(t, "the lock is held until LockTimeout", db.holder("r") == c, true)
		time.Sleep(2 * time.Second)
		want(t, "releases of the lock", c.count("release r resigned"), 1)
	})
}

// LockTimeout also bounds an attempt within the reconnect grace, which continues with
// another attempt.
func TestLockTimeoutReleasesLockDuringReconnectGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		var log strings.Builder
		node := open(t, db, func(c *tenure.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		e, rec := elect(t, node, tenure.ElectionConfig{ReconnectGrace: time.Minute})
		lead(t, e)
		rec.forget()
		db.mu.Lock()
		db.prepare = func(c *conn) { c.locks("r", true) }
		db.mu.Unlock()
		db.last().kill()
		time.Sleep(30 * time.Second)
		c := db.last()
		want(t, "state", e.State(), tenure.Reconnecting)
		want(t, "releases", c.count("release r resigned"), 2)
		want(t, "events", rec.summary(), "leader>reconnecting")
		c.set(func(c *conn) { c.onAcquire = nil })
		db.free("r")
		time.Sleep(10 * time.Second)
		want(t, "leads again", e.IsLeader(), true)
		closeNode(t, node)
		if got := log.String(); strings.Contains(got, "level=ERROR") || !strings.Contains(got, tenure.ErrLockTimeout.Error()) {
			t.Errorf("the log has an error, or does not say why the attempts failed: %s", got)
		}
	})
}

// answersFirst gives the first attempt a result, and grants the next ones.
func (c *conn) answersFirst(result tenure.AcquireResult) {
	c.set(func(c *conn) {
		asked := 0
		c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
			if asked++; asked == 1 {
				return &result
			}
			return &tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: 7}
		}
	})
}

// The clock of a machine that is suspended during a pending attempt counts too
// slowly, so the attempt continues within a RefreshInterval, whatever the
// server said at first.
func TestPendingAttemptContinuesWithinRefreshInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		db.last().answersFirst(tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Hour})
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		time.Sleep(node.Timing().RefreshInterval)
		synctest.Wait()
		want(t, "leads", e.IsLeader(), true)
		wantError(t, "Shutdown", e.Shutdown(t.Context()), nil)
	})
}

// A notification may say that the wait of a pending attempt is over: that the last node
// has come back after a change of the server, for one.
func TestNotificationContinuesPendingAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		db.last().answersFirst(tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Hour})
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "Start", e.Start(t.Context()), nil)
		synctest.Wait()
		want(t, "leads before the notification", e.IsLeader(), false)
		db.wake()
		synctest.Wait()
		want(t, "leads after the notification", e.IsLeader(), true)
		wantError(t, "Shutdown", e.Shutdown(t.Context()), nil)
	})
}
