package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// refusedBy checks that another peer finds the role busy.
func (p *peer) refusedBy(other *peer) {
	p.t.Helper()
	other.refused("scheduler")
}

func TestReservationIsForItsTargetOnly(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second, third := open(t, b), open(t, b), open(t, b)
	first.take("scheduler")
	err := first.Release([]tenure.ReleaseRequest{{
		Role: tenure.NamedRole("scheduler"), Term: first.heldRoles["scheduler"].term, Reason: history.EndHandedOver, Target: second.id, Reservation: time.Hour,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if attempt := third.refused("scheduler"); attempt.RetryIn <= 59*time.Minute || attempt.RetryIn > time.Hour {
			t.Errorf("another node shall retry in %v, want an hour", attempt.RetryIn)
		}
	}
	second.take("scheduler")
	second.release("scheduler", history.EndResigned)
	third.take("scheduler") // the reservation was for one acquisition

	err = third.Release([]tenure.ReleaseRequest{{
		Role: tenure.NamedRole("scheduler"), Term: third.heldRoles["scheduler"].term, Reason: history.EndHandedOver, Target: uuid.New(), Reservation: 200 * time.Millisecond,
	}})
	if err != nil {
		t.Fatal(err)
	}
	first.refused("scheduler")
	first.win("scheduler") // the target never acquired the role
}

// Nodes for which a role is not reserved do not even try its lock: they would make the
// target's attempt fail.
func TestReservedRoleIsTriedByItsTargetAlone(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, target, third := open(t, b), open(t, b), open(t, b)
	first.take("scheduler")
	err := first.Release([]tenure.ReleaseRequest{{
		Role: tenure.NamedRole("scheduler"), Term: first.heldRoles["scheduler"].term, Reason: history.EndHandedOver, Target: target.id, Reservation: time.Hour,
	}})
	if err != nil {
		t.Fatal(err)
	}
	// The session that has the lock now keeps it, since it cannot examine the row.
	tx, err := pgtest.Conn(t, b.connect.Config.ConnString()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), b.names.SQL("SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	third.refused("scheduler")
	if len(third.heldRoles) > 0 {
		t.Error("another node acquired the lock")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	target.take("scheduler")
}

// A node that tries continuously never gets between the release of a role and
// its reservation.
func TestReservationIsNeverSnatched(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	long := func(o *peerOptions) { o.timing.Lease = time.Minute } // no heartbeats are sent, and a busy machine is slow
	first, second, greedy := open(t, b, long), open(t, b, long), open(t, b, long)
	role := tenure.NamedRole("scheduler")
	first.take("scheduler")
	stop := make(chan struct{})
	snatched := make(chan tenure.AcquireResult, 1)
	go func() {
		defer close(snatched)
		for {
			select {
			case <-stop:
				return
			default:
			}
			attempts, err := greedy.TryAcquire([]tenure.AcquireRequest{{Role: role}})
			if err != nil {
				snatched <- tenure.AcquireResult{Err: err}
				return
			}
			// It may wait for the row, and then finds the reservation.
			if outcome := attempts[0].Outcome; outcome == tenure.OutcomeGranted || outcome == tenure.OutcomeFailed {
				snatched <- attempts[0]
				return
			}
		}
	}()
	leader, next := first, second
	for range 100 {
		err := leader.Release([]tenure.ReleaseRequest{{
			Role: role, Term: leader.heldRoles["scheduler"].term, Reason: history.EndHandedOver, Target: next.id, Reservation: time.Minute,
		}})
		if err != nil {
			t.Fatal(err)
		}
		for attempt := next.try("scheduler")[0]; attempt.Outcome != tenure.OutcomeGranted; attempt = next.try("scheduler")[0] {
			if attempt.Outcome == tenure.OutcomeFailed || len(snatched) > 0 {
				t.Fatalf("the target: %+v; the other node: %+v", attempt, <-snatched)
			}
		}
		leader, next = next, leader
	}
	close(stop)
	if attempt, ok := <-snatched; ok {
		t.Errorf("the reserved role was taken by another node, or %v", attempt.Err)
	}
	if n := row[int](t, b, "SELECT count(*) FROM {history} WHERE end_reason <> 'handed_over'"); n > 0 {
		t.Errorf("%d terms ended otherwise than by a hand-over", n)
	}
}
