package tenuretest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestClockFiresInOrder(t *testing.T) {
	clock := tenuretest.NewClock()
	start := clock.Now()
	var fired []string
	at := func(name string, then func()) func() {
		return func() {
			passed := clock.Now()
			if wall := passed.Wall.Sub(start.Wall); wall != passed.Mono-start.Mono {
				t.Errorf("%s: %v by the wall clock, %v by the other", name, wall, passed.Mono-start.Mono)
			}
			fired = append(fired, fmt.Sprintf("%s at %v", name, passed.Mono-start.Mono))
			if then != nil {
				then()
			}
		}
	}
	clock.AfterFunc(3*time.Second, at("c", nil))
	clock.AfterFunc(time.Second, at("a", func() {
		clock.AfterFunc(time.Second, at("b", func() { clock.AfterFunc(0, at("without delay", nil)) }))
	}))
	clock.AfterFunc(3*time.Second, at("d", nil))
	clock.AfterFunc(time.Hour, at("never", nil))
	stop := clock.AfterFunc(2*time.Second, at("stopped", nil))
	if !stop() || stop() {
		t.Error("stop prevents the call once")
	}

	clock.Advance(0)
	if len(fired) > 0 {
		t.Errorf("before any time has passed: %q", fired)
	}
	clock.Advance(3 * time.Second)
	want := []string{"a at 1s", "b at 2s", "without delay at 2s", "c at 3s", "d at 3s"}
	if !slices.Equal(fired, want) {
		t.Errorf("fired %q, want %q", fired, want)
	}
	if passed := clock.Now().Mono - start.Mono; passed != 3*time.Second {
		t.Errorf("%v have passed, want 3s", passed)
	}
}

func TestClockCannotGoBack(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance accepted a negative duration")
		}
	}()
	tenuretest.NewClock().Advance(-1)
}

func TestStopReportsCallThatWasMade(t *testing.T) {
	clock := tenuretest.NewClock()
	stop := clock.AfterFunc(time.Second, func() {})
	clock.Advance(time.Second)
	if stop() {
		t.Error("stop claims to have prevented a call that was made")
	}
	if clock.AfterFunc(-1, func() {})() {
		t.Error("stop claims to have prevented a call that is made immediately")
	}
	clock.Advance(0)
}

// stepped opens a node on a clock that is advanced by hand; it leads the role.
func stepped(t *testing.T, db *tenuretest.Database, clock *tenuretest.Clock, role tenure.Role) (*tenure.Election, *tenure.Term) {
	t.Helper()
	node, err := tenure.Open(t.Context(), db, tenure.Config{
		Name: "stepped", Lease: lease, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	election, err := node.Election(role)
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	term, err := election.WaitForLeadership(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return election, term
}

// However far the clock moves in one step, no heartbeat is missed.
func TestAdvanceLetsHeartbeatsThrough(t *testing.T) {
	t.Parallel()
	clock := tenuretest.NewClock()
	db := tenuretest.NewDatabaseWithClock(clock)
	election, first := stepped(t, db, clock, tenure.NamedRole("r"))
	_, second := stepped(t, db, clock, tenure.NamedRole("s"))
	for range 5 {
		clock.Advance(10 * time.Minute)
	}
	if !first.Valid() || !second.Valid() {
		t.Fatal("a term has ended although no node was silent")
	}
	if left := first.Remaining(); left < lease/2 || left > lease {
		t.Errorf("trust for %v, want most of %v", left, lease)
	}
	leader, err := election.Leader(t.Context())
	if err != nil || leader.ValidFor < lease/2 || leader.ValidFor > lease {
		t.Errorf("leader %+v, error %v; want most of its lease left", leader, err)
	}
	if passed := clock.Now().Wall.Sub(leader.AcquiredAt); passed != 50*time.Minute {
		t.Errorf("the term has lasted for %v by the database's clock, want 50m", passed)
	}
}

// Advance waits for what a session does after a notification.
func TestAdvanceLetsNewsThrough(t *testing.T) {
	t.Parallel()
	clock, role := tenuretest.NewClock(), tenure.NamedRole("r")
	db := tenuretest.NewDatabaseWithClock(clock)
	election, _ := stepped(t, db, clock, role)
	for range 100 {
		if err := election.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.Occupy(role)
		clock.Advance(time.Minute) // it tries, and has let others go first for long enough
		db.Vacate(role)
		clock.Advance(0)
		if !election.IsLeader() {
			t.Fatal("the role is vacant and the clock advanced, but no node leads")
		}
	}
}

func TestAdvanceEndsALease(t *testing.T) {
	t.Parallel()
	clock, role := tenuretest.NewClock(), tenure.NamedRole("r")
	db := tenuretest.NewDatabaseWithClock(clock)
	election, term := stepped(t, db, clock, role)
	clock.Advance(lease) // the last heartbeat was at some time before

	db.Silence(role)
	clock.Advance(lease - lease/10)
	if term.Valid() {
		t.Error("the term stands although no heartbeat was acknowledged")
	}
	if cause := context.Cause(term.Context()); !errors.Is(cause, tenure.ErrTrustExpired) {
		t.Errorf("the term ended with %v, want ErrTrustExpired", cause)
	}
	if err := db.Fence(term); err != nil {
		t.Errorf("fencing while the lease still runs: %v", err)
	}
	clock.Advance(lease / 10)
	if err := db.Fence(term); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("fencing after the lease: %v", err)
	}
	for late := time.Now().Add(10 * time.Second); !election.IsLeader(); clock.Advance(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the node does not lead again")
		}
	}
	if next := election.Term(); next.Number() <= term.Number() {
		t.Errorf("term %d follows term %d", next.Number(), term.Number())
	}
}

func TestClocksMustAgree(t *testing.T) {
	clock := tenuretest.NewClock()
	for name, open := range map[string]func() (*tenure.Node, error){
		"a node on the machine's clock": func() (*tenure.Node, error) {
			return tenure.Open(t.Context(), tenuretest.NewDatabaseWithClock(clock), tenure.Config{})
		},
		"a node on another clock": func() (*tenure.Node, error) {
			return tenure.Open(t.Context(), tenuretest.NewDatabaseWithClock(clock), tenure.Config{Clock: tenuretest.NewClock()})
		},
		"a database on the machine's clock": func() (*tenure.Node, error) {
			return tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Clock: clock})
		},
	} {
		if _, err := open(); !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("%s: got error %v, want ErrRefused", name, err)
		}
	}
}
