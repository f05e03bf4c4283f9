package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// lastReason reads how the last finished term of a role ended.
func (s site) lastReason(role string) (reason string) {
	s.t.Helper()
	err := pgtest.Conn(s.t, s.dsn).QueryRow(s.t.Context(),
		"SELECT end_reason FROM "+s.table("history")+" WHERE role = $1 ORDER BY term DESC LIMIT 1", role).Scan(&reason)
	if err != nil {
		s.t.Fatal(err)
	}
	return reason
}

func TestShutdownFollowsItsSequence(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	term := leads(t, b.campaign("r"))
	heir := a.campaign("r")
	a.seesStatus(b.ID(), cluster.Active)
	end := b.works()
	finished := start(func() error { return b.Shutdown(within(t)) })

	<-b.Stopping()
	if !b.ShutdownRequested() || b.AcceptsWork() {
		t.Error("the member accepts work while it stops")
	}
	if _, ok := b.InFlight().Enter(); ok {
		t.Error("new work was accepted")
	}
	a.seesStatus(b.ID(), cluster.Draining)
	if !term.Valid() || heir.IsLeader() {
		t.Error("the role was given up while work was in flight")
	}
	select {
	case err := <-finished:
		t.Fatalf("Shutdown returned while work was in flight: %v", err)
	default:
	}
	end()
	if err := result(t, finished); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if next := leads(t, heir); next.Number() <= term.Number() {
		t.Errorf("the next term is %d, after %d", next.Number(), term.Number())
	}
	a.seesGone(b.ID())
	if reason := site.lastReason("r"); reason != string(history.EndShutdown) {
		t.Errorf("the term ended as %q; want shutdown", reason)
	}
	if err := b.Shutdown(within(t)); err != nil {
		t.Errorf("Shutdown again: %v", err)
	}
	if err := b.Undrain(within(t)); !errors.Is(err, tenure.ErrStopping) {
		t.Errorf("Undrain after Shutdown: %v; want ErrStopping", err)
	}
	if err := b.Drain(within(t)); !errors.Is(err, tenure.ErrStopping) {
		t.Errorf("Drain after Shutdown: %v; want ErrStopping", err)
	}
}

// Work that does not end in time is abandoned; the other steps continue gracefully.
func TestShutdownAbandonsWorkThatNeverEnds(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	b := site.join("b", patientDrain(50*time.Millisecond))
	term := leads(t, b.campaign("r"))
	b.works()
	if err := b.Shutdown(within(t)); !errors.Is(err, tenure.ErrWorkRunning) {
		t.Errorf("Shutdown: %v; want ErrWorkRunning", err)
	}
	if !errors.Is(context.Cause(term.Context()), tenure.ErrResigned) {
		t.Errorf("the term ended because of %v; want a resignation", context.Cause(term.Context()))
	}
	a.seesGone(b.ID())
}

// Work under a term keeps the role until the session is cut.
func TestShutdownIsForced(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	config := patientDrain(time.Millisecond)
	config.Shutdown.ForceAfter = 300 * time.Millisecond
	b := site.join("b", config)
	term := leads(t, b.campaign("r"))
	guard, err := term.Guard()
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Done()
	heir := a.campaign("r")
	if err := b.Shutdown(within(t)); !errors.Is(err, tenure.ErrWorkRunning) {
		t.Errorf("Shutdown: %v; want ErrWorkRunning", err)
	}
	if term.Valid() {
		t.Error("the term is trusted after the session was cut")
	}
	leads(t, heir)
}

// The configuration for leaving can be changed while a member runs, and an invalid
// one changes nothing.
func TestSetShutdownAppliesWhileRunning(t *testing.T) {
	t.Parallel()
	b := newSite(t).join("b", patientDrain(time.Hour))
	err := b.SetShutdown(cluster.ShutdownConfig{DrainTimeout: time.Millisecond, ForceAfter: -1})
	if !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("SetShutdown: %v; want ErrInvalidConfig", err)
	}
	if err := b.SetShutdown(cluster.ShutdownConfig{DrainTimeout: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	b.works()
	if err := b.Shutdown(within(t)); !errors.Is(err, tenure.ErrWorkRunning) || !strings.Contains(err.Error(), "after 1ms") {
		t.Errorf("Shutdown: %v; want that work still runs after 1ms", err)
	}
}

// All calls return at the same end, which any caller's context brings about.
func TestConcurrentShutdownsEndTogether(t *testing.T) {
	t.Parallel()
	b := newSite(t).join("b", cluster.Config{})
	b.works()
	impatience := errors.New("impatient")
	hasty, cancel := context.WithCancelCause(context.Background())
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		ctx := within(t)
		if i == 2 {
			ctx = hasty
		}
		all.Go(func() { errs[i] = b.Shutdown(ctx) })
	}
	<-b.Stopping()
	cancel(impatience)
	all.Wait()
	for i, err := range errs {
		if !errors.Is(err, tenure.ErrWorkRunning) {
			t.Errorf("call %d: %v; want ErrWorkRunning", i, err)
		}
	}
}

// A drain in progress becomes part of the shutdown.
func TestShutdownContinuesADrain(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	leads(t, b.campaign("r"))
	end := b.works()
	drained := start(func() error { return b.Drain(within(t)) })
	a.seesStatus(b.ID(), cluster.Draining)
	finished := start(func() error { return b.Shutdown(within(t)) })
	<-b.Stopping()
	if err := b.Undrain(within(t)); !errors.Is(err, tenure.ErrStopping) {
		t.Errorf("Undrain during the shutdown: %v; want ErrStopping", err)
	}
	select {
	case err := <-finished:
		t.Errorf("Undrain cut the shutdown short: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	end()
	if err := result(t, finished); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := result(t, drained); !errors.Is(err, tenure.ErrStopping) {
		t.Errorf("Drain: %v; want ErrStopping", err)
	}
	a.seesGone(b.ID())
}

func TestDrainedNodeShutsDown(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	if err := b.Drain(within(t)); err != nil {
		t.Fatal(err)
	}
	a.seesDrained(b.ID())
	if err := b.Shutdown(within(t)); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	a.seesGone(b.ID())
}

// Close cuts everything short.
func TestCloseEndsADrain(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	b.works()
	drained := start(func() error { return b.Drain(within(t)) })
	a.seesStatus(b.ID(), cluster.Draining)
	if err := b.Close(within(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := result(t, drained); !errors.Is(err, tenure.ErrStopping) {
		t.Errorf("Drain: %v; want ErrStopping", err)
	}
	select {
	case <-b.Stopping():
	default:
		t.Error("Close did not report that the member stops")
	}
	if err := b.Shutdown(within(t)); err != nil && !errors.Is(err, tenure.ErrWorkRunning) {
		t.Errorf("Shutdown after Close: %v", err)
	}
}

// Without a database there is no node to hand over to, and nothing to wait for except
// work in flight.
func TestShutdownWithoutADatabaseWaitsForWork(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	site.join("a", cluster.Config{})
	b := site.join("b", cluster.Config{Shutdown: cluster.ShutdownConfig{HandOver: true, ForceAfter: time.Hour}})
	leads(t, b.campaign("r"))
	end := b.works()
	finished := start(func() error { return b.Shutdown(within(t)) })
	<-b.Stopping()
	b.store.kill()
	select {
	case err := <-finished:
		t.Errorf("Shutdown returned while work was in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	end()
	if err := result(t, finished); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
