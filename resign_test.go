package tenure_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

func TestStepDownWaitsForGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		rec.forget()
		guard, err := e.Guard()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-term.Stopping()
			added, err := term.Guard()
			wantError(t, "invariant 4: new work in a term that stops", err, tenure.ErrNotLeader)
			if err == nil {
				added.Done() // StepDown would wait for it
			}
			want(t, "trusted while work is in flight", guard.Valid(), true)
			time.Sleep(5 * time.Second)
			want(t, "still trusted", guard.Valid(), true)
			guard.Done()
			guard.Done() // counts once
		}()
		begun := time.Now()
		if err := e.StepDown(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, "invariant 4: StepDown waits for the work in flight", time.Since(begun), 5*time.Second)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		want(t, "held", db.holder("r") == nil, true)
		want(t, "events", rec.summary(), "leader>releasing releasing>follower released follower>acquiring acquiring>follower acquire_failed")
		wantError(t, "again", e.StepDown(t.Context()), tenure.ErrNotLeader)
		time.Sleep(2 * time.Second) // longer than stepDownPause
		want(t, "leads again", e.IsLeader(), true)
	})
}

// Work that does not return keeps the lock of its role, and other terms stay
// valid. The release follows when the work returns.
func TestStepDownKeepsLockUnderStuckWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		other, _ := node.Election(tenure.NamedRole("other"))
		term, otherTerm := lead(t, e), lead(t, other)
		guard, _ := term.Guard()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		go func() {
			<-term.Context().Done()
			want(t, "stuck work is canceled after", time.Since(begun), 10*time.Second)
		}()
		err := e.StepDown(ctx)
		wantError(t, "StepDown", err, tenure.ErrWorkRunning)
		wantError(t, "StepDown", err, context.DeadlineExceeded)
		want(t, "leader", e.IsLeader(), false)
		want(t, "state", e.State(), tenure.Releasing)
		want(t, "invariant 4: the role is held while stuck work runs", db.holder("r") != nil, true)
		want(t, "other role trusted", otherTerm.Valid(), true)
		guard.Done()
		synctest.Wait()
		want(t, "held after the work", db.holder("r") == nil, true)
		want(t, "state", e.State(), tenure.Follower)
	})
}

func TestForceStepDownAbortsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		other, _ := node.Election(tenure.NamedRole("other"))
		term, otherTerm := lead(t, e), lead(t, other)
		guard, _ := term.Guard()
		first := db.last()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.ForceStepDown(ctx); err != nil {
			t.Error(err)
		}
		want(t, "cut", first.wasAborted(), true)
		want(t, "other role trusted", otherTerm.Valid(), false)
		time.Sleep(time.Minute)
		want(t, "campaigns while its work runs", e.IsLeader(), false)
		want(t, "other role leads again", other.IsLeader(), true)
		guard.Done()
		time.Sleep(6 * time.Second)
		want(t, "leads again", e.IsLeader(), true)
	})
}

// The node never campaigns for a role while its old work still runs in this
// process.
func TestNoCampaignWhileOldWorkRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		guard, _ := term.Guard()
		db.last().kill()
		time.Sleep(time.Minute)
		want(t, "state", e.State(), tenure.Follower)
		want(t, "held", db.holder("r") == nil, true)
		guard.Done()
		synctest.Wait()
		want(t, "leader", e.IsLeader(), true)
	})
}

func TestFailedReleaseEndsSession(t *testing.T) {
	for name, test := range map[string]struct {
		cfg    tenure.ElectionConfig
		events string
	}{
		"reacquire": {tenure.ElectionConfig{}, "leader>releasing releasing>follower error follower>acquiring acquiring>leader acquired"},
		"stop":      {tenure.ElectionConfig{NoReacquire: true}, "leader>releasing releasing>stopped error stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db)
				defer closeNode(t, node)
				e, rec := elect(t, node, test.cfg)
				lead(t, e)
				rec.forget()
				first := db.last()
				broken := errors.New("permission denied")
				first.set(func(c *conn) { c.onRelease = func() error { return broken } })
				wantError(t, "StepDown", e.StepDown(t.Context()), broken)
				wantError(t, "on_error", rec.errorOf(tenure.EventError), broken)
				synctest.Wait()
				want(t, "session given up", first.wasAborted(), true)
				want(t, "events", rec.summary(), test.events)
			})
		})
	}
}

func TestRequestsReachLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r", By: "an operator"})
		<-term.Context().Done()
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		synctest.Wait()
		want(t, "reason", db.last().count("release r stepped_down by an operator"), 1)
		time.Sleep(time.Minute)
		_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: "r", Target: uuid.New()})
		synctest.Wait()
		want(t, "reason", db.last().count("release r handed_over"), 1)
	})
}

// A request that does not come through the database is recorded as if it did.
func TestHandleRequestRecordsRequester(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		wantError(t, "without a leader", e.HandleRequest(t.Context(), tenure.Request{Kind: tenure.RequestStepDown}), tenure.ErrNotLeader)
		term := lead(t, e)
		for _, request := range []tenure.Request{{}, {Kind: tenure.RequestDrain}, {Kind: tenure.RequestStepDown, Role: "other"}} {
			wantError(t, string(request.Kind), e.HandleRequest(t.Context(), request), tenure.ErrInvalidConfig)
		}
		for _, kind := range []tenure.RequestKind{tenure.RequestStepDown, tenure.RequestHandOver} {
			earlier := tenure.Request{Kind: kind, Term: term.Number() - 1, Target: uuid.New()}
			wantError(t, "for an earlier term", e.HandleRequest(t.Context(), earlier), tenure.ErrNotLeader)
		}
		want(t, "valid", term.Valid(), true)
		wantError(t, "step down", e.HandleRequest(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "r", Term: term.Number(), By: "ann"}), nil)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSteppedDown)
		want(t, "stepped down", db.last().count("release r stepped_down by ann"), 1)
		time.Sleep(time.Minute)
		request := tenure.Request{Kind: tenure.RequestHandOver, Target: uuid.New(), By: "bob"}
		wantError(t, "hand over", e.HandleRequest(t.Context(), request), nil)
		want(t, "handed over", db.last().count("release r handed_over by bob"), 1)
	})
}

// A request for a term that is over does not end the next one.
func TestHandleRequestSparesNextTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		first := lead(t, e).Number()
		wantError(t, "the present term", e.HandleRequest(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Term: first}), nil)
		time.Sleep(time.Minute)
		term := lead(t, e)
		for _, request := range []tenure.Request{
			{Kind: tenure.RequestStepDown, Term: first}, {Kind: tenure.RequestHandOver, Target: uuid.New(), Term: first},
		} {
			wantError(t, string(request.Kind), e.HandleRequest(t.Context(), request), tenure.ErrNotLeader)
		}
		want(t, "valid", term.Valid(), true)
	})
}

func TestReconnectGraceSuppressesEvents(t *testing.T) {
	grace := tenure.ElectionConfig{ReconnectGrace: 30 * time.Second}
	t.Run("recovered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			node := open(t, db)
			defer closeNode(t, node)
			e, rec := elect(t, node, grace)
			term := lead(t, e)
			rec.forget()
			db.mu.Lock()
			db.refuse = tenure.ErrConnection
			db.mu.Unlock()
			db.last().kill()
			time.Sleep(10 * time.Second)
			want(t, "state", e.State(), tenure.Reconnecting)
			want(t, "leader", e.IsLeader(), false)
			want(t, "old term", term.Valid(), false)
			db.mu.Lock()
			db.refuse = nil
			db.mu.Unlock()
			next, _ := e.WaitForLeadership(t.Context())
			want(t, "number grows", next.Number() > term.Number(), true)
			time.Sleep(time.Minute)
			want(t, "events", rec.summary(), "leader>reconnecting error reconnecting>leader")
		})
	})
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			node := open(t, db)
			defer closeNode(t, node)
			e, rec := elect(t, node, grace)
			term := lead(t, e)
			rec.forget()
			db.mu.Lock()
			db.refuse = tenure.ErrConnection
			db.mu.Unlock()
			db.last().kill()
			time.Sleep(31 * time.Second)
			want(t, "events", rec.summary(), "leader>reconnecting error reconnecting>follower lost")
			want(t, "lost term", rec.events[len(rec.events)-1].Term, term)
			wantError(t, "why", rec.errorOf(tenure.EventLost), tenure.ErrSessionLost)
		})
	})
	t.Run("another took it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			node := open(t, db)
			defer closeNode(t, node)
			e, rec := elect(t, node, grace)
			lead(t, e)
			rec.forget()
			first := db.last()
			db.mu.Lock()
			db.holders["r"] = &conn{db: db, options: tenure.SessionOptions{Node: tenure.NodeInfo{ID: uuid.New()}}}
			db.mu.Unlock()
			first.kill()
			if got := rec.summary(); !strings.HasPrefix(got, "leader>reconnecting reconnecting>follower lost") {
				t.Error(got)
			}
		})
	})
	t.Run("shut down", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			node := open(t, db)
			e, rec := elect(t, node, grace)
			lead(t, e)
			rec.forget()
			db.mu.Lock()
			db.refuse = tenure.ErrConnection
			db.mu.Unlock()
			db.last().kill()
			time.Sleep(time.Second)
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			closeNode(t, node)
			want(t, "events", rec.summary(), "leader>reconnecting error reconnecting>stopped stopped")
		})
	})
}

func TestConcurrentCallsKeepStatesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		var group sync.WaitGroup
		for i := range 30 {
			group.Go(func() {
				for range 50 {
					switch i % 3 {
					case 0:
						_ = e.Start(context.Background())
					case 1:
						_ = e.Shutdown(context.Background())
					default:
						_ = e.StepDown(context.Background())
					}
				}
			})
		}
		group.Wait()
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, "state", e.State(), tenure.Stopped)
		want(t, "the role is free", db.holder("r") == nil, true)
		lead(t, e)
		closeNode(t, node)
		rec.summary()
		from := tenure.Stopped
		for _, event := range rec.events {
			if event.Kind == tenure.EventStateChange {
				want(t, "unbroken chain", event.From, from)
				from = event.To
			}
		}
		want(t, "last state", from, tenure.Stopped)
	})
}

func TestCloseWaitsForStuckWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		guard, _ := lead(t, e).Guard()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := node.Close(ctx)
		wantError(t, "Close with stuck work", err, tenure.ErrWorkRunning)
		synctest.Wait()
		want(t, "the connection is closed when Close gives up", db.last().wasAborted(), true)
		guard.Done()
		if err := node.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})
}

// A callback returns after Close has given up, and then work fails. Its error is delivered,
// and with -race the goroutine for that is no misuse of what Close waited for.
func TestErrorOfWorkThatOutlivesCloseIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		e, _ := elect(t, node, tenure.ElectionConfig{})
		begun, errs, failed := make(chan struct{}), make(chan error, 9), errors.New("failed")
		e.OnStateChange(func(_, to tenure.State) {
			if to == tenure.Releasing {
				time.Sleep(time.Second)
			}
		})
		e.OnError(func(err error) { errs <- err })
		go func() {
			_ = e.Run(context.Background(), func(context.Context, *tenure.Term) error {
				close(begun)
				time.Sleep(time.Minute)
				return failed
			})
		}()
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantError(t, "Close with stuck work", node.Close(ctx), tenure.ErrWorkRunning)
		for err := range errs {
			if errors.Is(err, failed) {
				break
			}
		}
	})
}

// While Close waits for work, no election can be added or started, and one that
// was never started does not delay it.
func TestCloseRejectsNewElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		idle, err := node.Election(tenure.NamedRole("idle"))
		wantError(t, "second election", err, nil)
		guard, _ := lead(t, e).Guard()
		closed := make(chan error, 1)
		go func() { closed <- node.Close(t.Context()) }()
		synctest.Wait()
		_, err = node.Election(tenure.NamedRole("late"))
		wantError(t, "Election while closing", err, tenure.ErrClosed)
		wantError(t, "Start while closing", idle.Start(t.Context()), tenure.ErrClosed)
		want(t, "elections", len(node.Elections()), 2)
		guard.Done()
		wantError(t, "Close", <-closed, nil)
	})
}

// Close returns even if the database never answers.
func TestCloseReturnsOnSilentDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		c := db.last()
		c.set(func(c *conn) { c.onRelease = func() error { <-c.dead; return errGone } })
		begun := time.Now()
		closeNode(t, node)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("took %v, more than a lease", took)
		}
	})
}
