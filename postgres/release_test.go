package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Neither a row that cannot be written nor a notification that cannot be sent
// keeps a role locked.
func TestRoleIsReleasedWhenRecordFails(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	brief := func(o *peerOptions) { o.timing.RefreshInterval = 2 * time.Second } // statements may take half of it
	first, second := open(t, b, brief), open(t, b)
	first.take("scheduler")
	first.take("archive")

	ctx := context.Background()
	tx, err := pgtest.Conn(t, b.connect.Config.ConnString()).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, b.names.SQL("SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	second.drain()
	if err := first.Release(releasesOf(first)); err != nil {
		t.Fatalf("release: %v", err)
	}
	if !second.wait(withinLease) {
		t.Error("Invariant 7: the release was not announced")
	}
	if len(first.heldRoles) > 0 {
		t.Errorf("the session still keeps %d roles", len(first.heldRoles))
	}
	first.beat()
	if attempt := second.try("scheduler")[0]; attempt.Outcome == tenure.OutcomeHeld {
		t.Error("the role is still locked")
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	second.win("scheduler")
	second.win("archive")
}

func TestReleaseOfLostLocksIsReported(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	p.interfere("SELECT pg_advisory_unlock_all()")
	if err := p.Release(releasesOf(p)); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("%v; want the session superseded", err)
	}
}

// TestReleaseOfAnotherTermIsRefused: a session that is asked to end a term other
// than the one it holds keeps the lock, and the engine ends the session.
func TestReleaseOfAnotherTermIsRefused(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	term := first.heldRoles["scheduler"].term
	for _, other := range []int64{term - 1, term + 1} {
		err := first.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("scheduler"), Term: other, Reason: history.EndResigned}})
		if !errors.Is(err, tenure.ErrSessionLost) {
			t.Errorf("release of term %d while %d is held: %v; want ErrSessionLost", other, term, err)
		}
		second.refused("scheduler")
	}
	first.release("scheduler", history.EndResigned)
	second.take("scheduler")
}
