package tenuretest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestHandOverReachesItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a := campaign(t, db, "a", role, tenure.Config{})
		for _, name := range []string{"b", "c", "d"} {
			campaign(t, db, name, role, tenure.Config{})
		}
		target := campaign(t, db, "target", role, tenure.Config{})
		request := tenure.Request{Kind: tenure.RequestHandOver, Role: "r", Target: target.Node().ID(), By: "the test"}
		term := a.leads()
		if err := db.Request(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		endsWithin(t, term, atOnce, tenure.ErrHandedOver)
		target.leadsWithin(time.Second)
	})
}

// A request is for the term it was made in.
func TestRequestEndsWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		a, b := campaign(t, db, "a", role, tenure.Config{}), campaign(t, db, "b", role, tenure.Config{})
		a.leads()
		db.Silence(role)
		if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r"}); err != nil {
			t.Fatal(err)
		}
		term := b.leadsWithin(lease + atOnce)
		time.Sleep(lease)
		if b.leads() != term {
			t.Error("the new leader did what the old one was asked for")
		}
	})
}

func TestSettleDelaysUncleanTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		careful := tenure.Config{Settle: 3 * time.Second}
		a := campaign(t, db, "a", role, careful)
		a.leads() // the first term has nothing to wait for
		b := campaign(t, db, "b", role, careful)
		if err := a.HandOver(t.Context(), b.Node().ID()); err != nil {
			t.Fatal(err)
		}
		b.leadsWithin(atOnce) // nor has one after a resignation
		time.Sleep(lease)     // a lets others go first for a while
		a, b = b, a
		term := a.leads()
		db.Revoke(role)
		b.wantStandby()
		time.Sleep(3*time.Second - atOnce)
		b.wantStandby()
		next := b.leadsWithin(10 * atOnce)
		if next.Number() <= term.Number() || next.PrecedingVacancy() < 3*time.Second {
			t.Errorf("term %d after term %d, vacant for %v", next.Number(), term.Number(), next.PrecedingVacancy())
		}
	})
}

func TestObserveReportsLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		changes := tenure.Observe(ctx, db, tenure.Config{Logger: slog.New(slog.DiscardHandler)}, role)
		synctest.Wait()
		db.Occupy(role)
		if change := <-changes; change.Leader == nil || change.Leader.NodeName != "stranger" {
			t.Errorf("got %+v, want that the stranger leads", change)
		}
		db.Vacate(role)
		if change := <-changes; change.Leader != nil || change.Previous == nil {
			t.Errorf("got %+v, want that no node leads", change)
		}
		campaign(t, db, "a", role, tenure.Config{}).leads()
		if change := <-changes; change.Leader == nil || change.Leader.NodeName != "a" {
			t.Errorf("got %+v, want that a leads", change)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the observer learned of the changes after %v, want immediately", took)
		}
	})
}

// Two names can be given one key: then they are one seat.
func TestNamesWithOneKeyShareALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		a := campaign(t, db, "a", tenure.KeyRole(7), tenure.Config{})
		a.leads()
		other := tenure.NamedRole("seven").WithKey(7)
		a.join(a.Node(), other).wantStandby()
		b := campaign(t, db, "b", other, tenure.Config{})
		b.wantStandby()
		db.Occupy(other)
		b.wantStandby()
		if err := a.Refresh(t.Context()); err == nil {
			t.Error("the node leads under one name what a stranger leads under the other")
		}
	})
}

// connect opens a session without a node.
func connect(t *testing.T, db *tenuretest.Database) tenure.Session {
	t.Helper()
	s, err := db.Open(t.Context(), tenure.SessionOptions{
		Node: tenure.NodeInfo{ID: uuid.New()}, Timing: tenure.Timing{Lease: lease},
		Clock: clocks.System(), MaySend: func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abort)
	return s
}

// A notification does not reach a silent session before its silence ends.
func TestSilenceKeepsNewsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
		s := connect(t, db)
		if _, err := s.TryAcquire([]tenure.AcquireRequest{{Role: role}}); err != nil {
			t.Fatal(err)
		}
		resume := db.Silence(role)
		if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r"}); err != nil {
			t.Fatal(err)
		}
		for _, silent := range []bool{true, false} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if changed, err := s.Wait(ctx); changed == silent || err != nil {
				t.Errorf("silent %t: Wait returned %t, %v", silent, changed, err)
			}
			cancel()
			resume()
		}
	})
}

func TestSessionRejectsRolesItDoesNotHold(t *testing.T) {
	db, role := tenuretest.NewDatabase(), tenure.NamedRole("r")
	s := connect(t, db)
	if err := s.Release([]tenure.ReleaseRequest{{Role: role, Term: 1}}); err == nil {
		t.Error("a role was released that the session does not hold")
	}
	for i, want := range []tenure.Outcome{tenure.OutcomeGranted, tenure.OutcomeFailed} {
		attempts, err := s.TryAcquire([]tenure.AcquireRequest{{Role: role}})
		if err != nil || attempts[0].Outcome != want {
			t.Errorf("attempt %d: got %+v, error %v; want outcome %d", i, attempts, err, want)
		}
	}
}

func TestEndedContextFailsRequests(t *testing.T) {
	db := tenuretest.NewDatabase()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := db.Leaders(ctx); !errors.Is(err, reason) {
		t.Errorf("Leaders: got error %v, want %v", err, reason)
	}
	if err := db.Request(ctx, tenure.Request{Role: "r"}); !errors.Is(err, reason) {
		t.Errorf("Request: got error %v, want %v", err, reason)
	}
	if err := db.Listen(ctx, func() {}); err != nil {
		t.Errorf("Listen: %v", err)
	}
}
