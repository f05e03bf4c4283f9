package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// year is by how much the database's clock is ahead.
const year = 365 * 24 * time.Hour

// clocked returns a backend on a server whose clock is a year ahead.
func clocked(t *testing.T) (*Backend, *pgtest.Clock) {
	t.Helper()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	clock.Set(t, year)
	return backendOn(t, server.DSN(), Config{Schema: server.Schema(t)}), clock
}

// A hand-over under a clock that was ahead reserves its role no longer than the reservation
// lasts twice.
func TestReservationOfFalseClockEnds(t *testing.T) {
	t.Parallel()
	b, clock := clocked(t)
	first, second := open(t, b, lasting), open(t, b, lasting)
	first.take("scheduler")
	err := first.Release([]tenure.ReleaseRequest{{
		Role: tenure.NamedRole("scheduler"), Term: first.heldRoles["scheduler"].term, Reason: history.EndHandedOver,
		Target: uuid.New(), Reservation: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	second.refused("scheduler") // the clock is still ahead
	clock.Set(t, 0)
	if holders, err := second.Holders([]string{"scheduler"}); err != nil || len(holders) > 0 {
		t.Errorf("a role that was reserved under a false clock is held by %v, %v", holders, err)
	}
	second.take("scheduler")
}

// A session that hangs is terminated a lease after the clock is right, although its last
// heartbeat is a year ahead.
func TestHungSessionOfFalseClockIsTerminated(t *testing.T) {
	t.Parallel()
	b, clock := clocked(t)
	hung, other := open(t, b, brief), open(t, b, lasting)
	hung.take("scheduler")
	hung.stick()
	clock.Set(t, 0)
	// The watch would end it by the same rule; the session alone must do it too.
	for deadline := time.Now().Add(patience); ; {
		other.beat()
		if err := other.session.reapIfSilent(); err != nil {
			t.Fatal(err)
		}
		if !other.busy("scheduler") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the session that hangs still leads %v after the clock was set right", patience)
		}
		other.wait(100 * time.Millisecond)
	}
}

// A heartbeat that is corrected is no death: the node's next term would end at that time.
func TestCorrectedHeartbeatIsNoDeath(t *testing.T) {
	t.Parallel()
	b, clock := clocked(t)
	_, other := open(t, b, lasting), open(t, b, lasting)
	clock.Set(t, 0)
	other.beat()
	if err := other.session.reapIfSilent(); err != nil {
		t.Fatal(err)
	}
	if !row[bool](t, b, "SELECT max(last_heartbeat) < clock_timestamp() + interval '1 day' FROM {nodes}") {
		t.Fatal("the heartbeats of a clock that was ahead are not corrected")
	}
	if row[bool](t, b, "SELECT EXISTS (SELECT FROM {nodes} WHERE died_at IS NOT NULL)") {
		t.Error("a living node has a time of death after its heartbeat was corrected")
	}
}

// A node that died under a clock that was ahead can be forgotten a lease after the clock is
// right.
func TestNodeOfFalseClockIsForgotten(t *testing.T) {
	t.Parallel()
	b, clock := clocked(t)
	dead := open(t, b, brief)
	open(t, b, brief)
	dead.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", dead.id)
	clock.Set(t, 0)
	begun := time.Now()
	if err := b.Forget(t.Context(), dead.id); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < stuckLease-time.Second || took > patience {
		t.Errorf("forgotten after %v; want the lease of %v", took, stuckLease)
	}
}

// After a start under a clock that was ahead, the time that a term waits for counts from
// when a session found the false time.
func TestTermOfFalseStartWaitsForLeaseOnly(t *testing.T) {
	t.Parallel()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
	first := open(t, b, lasting)
	first.take("scheduler")
	clock.Set(t, year)
	server.Restart(t, "fast")
	clock.Set(t, 0)
	// The last leader's row is gone, so the wait is not over when all nodes are back.
	// Set by hand: an operator removed the row
	exec(t, b, "DELETE FROM {nodes}")
	second := open(t, b, brief)
	second.try("scheduler")
	held := second.heldRoles["scheduler"]
	if held == nil {
		t.Fatal("the role is not held although its lock is free")
	}
	if left := held.wait.until - second.opening.Clock.Now().Mono; left > 2*time.Minute {
		t.Errorf("the term waits for %v; want at most the longest lease", left)
	}
}
