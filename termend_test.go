package tenure_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// A term that was given up is not valid, even if its session is live and its
// work has not returned: trust ends and the context is canceled first, then the
// work returns, then the lock is released (Invariants 1 and 4).
func TestGivenUpTermIsInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		other, _ := node.Election(tenure.NamedRole("other"))
		term, otherTerm := lead(t, e), lead(t, other)
		guard, err := term.Guard()
		if err != nil {
			t.Fatal(err)
		}
		freed := make(chan error, 1)
		go func() { freed <- e.StepDown(context.Background()) }()
		time.Sleep(10*time.Second - time.Millisecond) // StopTimeout
		synctest.Wait()
		want(t, "the term is valid while its work may end", term.Valid(), true)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if term.Context().Err() == nil {
			t.Error("invariant 4: the context of a term that was given up is not canceled")
		}
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		if term.Valid() || guard.Valid() || e.IsLeader() || e.Term() != nil {
			t.Error("invariant 1: a term that was given up is valid")
		}
		want(t, "time that a term that was given up remains valid", term.Remaining(), time.Duration(0))
		if _, err := term.Guard(); err == nil {
			t.Error("invariant 4: a term that was given up takes new work")
		}
		want(t, "the session is lost", otherTerm.Valid(), true)
		if db.holder("r") == nil {
			t.Error("invariant 4: the role was released while its work runs")
		}
		guard.Done()
		wantError(t, "StepDown", <-freed, nil)
		want(t, "valid after the release", term.Valid(), false)
	})
}

// For work that does not use Stopping, the context is canceled as soon as the
// term is given up (Invariant 4).
func TestGivenUpTermCancelsContext(t *testing.T) {
	for name, giveUp := range map[string]func(*tenure.Election) error{
		"StepDown": func(e *tenure.Election) error { return e.StepDown(context.Background()) },
		"Shutdown": func(e *tenure.Election) error { return e.Shutdown(context.Background()) },
		"Drain":    func(e *tenure.Election) error { return e.Node().Drain(context.Background(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db)
				defer closeNode(t, node)
				e, _ := elect(t, node, tenure.ElectionConfig{})
				started, ended := make(chan *tenure.Term, 8), make(chan error, 1)
				ctx, cancel := context.WithCancel(context.Background())
				finish := make(chan struct{})
				go func() {
					ended <- e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
						started <- term
						select {
						case <-ctx.Done():
						case <-finish: // a test that fails ends, too
						}
						return nil
					})
				}()
				term := <-started
				freed := make(chan error, 1)
				go func() { freed <- giveUp(e) }()
				synctest.Wait()
				if term.Context().Err() == nil {
					t.Error("invariant 4: the context of a term that was given up is not canceled")
				}
				want(t, "valid", term.Valid(), false)
				cancel()
				close(finish)
				wantError(t, name, <-freed, nil)
				wantError(t, "Run", <-ended, nil)
			})
		})
	}
}

// The connection is closed only after the work under a lost session has
// returned, because closing it releases the locks (Invariant 4).
func TestConnectionOutlivesTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		other, _ := node.Election(tenure.NamedRole("other"))
		term := lead(t, e)
		lead(t, other) // its work has returned: it does not count
		guard, err := term.Guard()
		if err != nil {
			t.Fatal(err)
		}
		first := db.last()
		first.set(func(c *conn) { c.onHeartbeat = func() error { return tenure.ErrSuperseded } })
		<-term.Context().Done()
		time.Sleep(time.Minute)
		if first.wasAborted() || db.holder("r") != first {
			t.Error("invariant 4: the connection was closed while work under its session ran")
		}
		guard.Done()
		synctest.Wait()
		want(t, "the connection is closed after the work", first.wasAborted(), true)
	})
}

// A guard counts once, however often Done is called: the role waits for every
// other piece of work (Invariant 4).
func TestGuardDoneTwiceCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		first, err := term.Guard()
		if err != nil {
			t.Fatal(err)
		}
		second, err := term.Guard()
		if err != nil {
			t.Fatal(err)
		}
		first.Done()
		first.Done()
		freed := make(chan error, 1)
		go func() { freed <- e.StepDown(context.Background()) }()
		time.Sleep(time.Minute)
		select {
		case err := <-freed:
			t.Fatalf("invariant 4: the role was released while guarded work runs (%v)", err)
		default:
		}
		second.Done()
		wantError(t, "StepDown", <-freed, nil)
	})
}

// A guard shows that its term was asked to end, and changes nothing else: when the
// guard is done, the context of other work is canceled without a delay.
func TestGuardShowsStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, err := node.Election(tenure.NamedRole("r"))
		if err != nil {
			t.Fatal(err)
		}
		terms := make(chan *tenure.Term, 1)
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() {
			_ = e.Run(t.Context(), func(ctx context.Context, term *tenure.Term) error { // ends with Done
				terms <- term
				<-ctx.Done()
				return tenure.Done
			})
		})
		guard, err := (<-terms).Guard()
		if err != nil {
			t.Fatal(err)
		}
		stopping := guard.Stopping()
		freed := make(chan error, 1)
		begun := time.Now()
		go func() { freed <- e.StepDown(context.Background()) }()
		<-stopping
		time.Sleep(2 * time.Second)
		want(t, "the term is valid while the guard is held", guard.Valid(), true)
		guard.Done()
		wantError(t, "StepDown", <-freed, nil)
		want(t, "time until the role was free", time.Since(begun), 2*time.Second)
	})
}

// slowStart is a context of a caller that is slow between its start of an election and
// its wait for a term.
type slowStart struct {
	context.Context
	calls atomic.Int32
	pause func()
}

func (s *slowStart) Err() error {
	if s.calls.Add(1) == 2 {
		s.pause()
	}
	return s.Context.Err()
}

func TestCampaignReturnsCauseOfTermThatEndedTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		ctx := &slowStart{Context: t.Context(), pause: func() {
			synctest.Wait()
			want(t, "leader", e.IsLeader(), true)
			db.last().kill()
			synctest.Wait()
		}}
		term, err := e.Campaign(ctx)
		want(t, "a term", term != nil, false)
		wantError(t, "Campaign", err, tenure.ErrStopped)
		wantError(t, "cause of the end of the campaign", err, tenure.ErrSessionLost)
		wantError(t, "lost", rec.errorOf(tenure.EventLost), tenure.ErrSessionLost)
	})
}
