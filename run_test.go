package tenure_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

func TestRunLeadsRepeatedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		terms, last := 0, int64(0)
		err := e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			terms++
			want(t, "number grows", term.Number() > last, true)
			last = term.Number()
			want(t, "value", ctx.Value(key{}), any("value"))
			if terms == 3 {
				cancel()
			} else {
				db.last().kill()
			}
			<-ctx.Done()
			return ctx.Err()
		})
		want(t, "Run", err, nil)
		want(t, "terms", terms, 3)
		want(t, "released", db.last().count("release r shutdown"), 1)
		closeNode(t, node)
	})
}

type key struct{}

// Work that uses Stopping may finish with a valid term; other work has its
// context canceled without delay.
func TestRunStopsGracefully(t *testing.T) {
	for _, listens := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			node := open(t, db)
			defer closeNode(t, node)
			e, _ := elect(t, node, tenure.ElectionConfig{})
			ctx, cancel := context.WithCancel(t.Context())
			defer time.AfterFunc(time.Second, cancel).Stop()
			begun := time.Now()
			_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
				if listens {
					<-term.Stopping()
					time.Sleep(3 * time.Second)
					want(t, "trusted", term.Valid(), true)
					want(t, "context", ctx.Err(), nil)
					return nil
				}
				<-ctx.Done()
				want(t, "trusted", term.Valid(), false)
				return nil
			})
			want(t, "took", time.Since(begun), map[bool]time.Duration{true: 4 * time.Second, false: time.Second}[listens])
		})
	}
}

func TestRunReturnsAfterDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		want(t, "Run", e.Run(t.Context(), func(context.Context, *tenure.Term) error { return tenure.Done }), nil)
		want(t, "held", db.holder("r") == nil, true)
		if got := rec.summary(); got != "stopped>follower follower>acquiring acquiring>leader acquired leader>releasing releasing>stopped released stopped" {
			t.Error(got)
		}
	})
}

// If work returns early, the node gives up the role, reports the error, and
// pauses longer each time.
func TestRunPausesAfterEarlyReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		broken := errors.New("broken")
		ctx, cancel := context.WithTimeout(t.Context(), 36*time.Second)
		defer cancel()
		terms := 0
		want(t, "Run", e.Run(ctx, func(context.Context, *tenure.Term) error { terms++; return broken }), nil)
		want(t, "terms in 0, 5, 15 and 35 s", terms, 4)
		wantError(t, "on_error", rec.errorOf(tenure.EventError), broken)
	})
}

// A standby leads as soon as the work of the leader fails, and the node whose
// work fails does not campaign while the role is led.
func TestStandbyLeadsWhenWorkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		broken, healthy := open(t, db), open(t, db)
		defer closeNode(t, broken)
		defer closeNode(t, healthy)
		first, _ := elect(t, broken, tenure.ElectionConfig{})
		second, _ := elect(t, healthy, tenure.ElectionConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var failed time.Time
		failures := 0
		leading := make(chan struct{})
		early, cancelEarly := context.WithTimeout(ctx, time.Hour-time.Second) // or it could lead after the second
		defer cancelEarly()
		go func() {
			_ = first.Run(early, func(context.Context, *tenure.Term) error {
				close(leading)
				time.Sleep(time.Second)
				failures++
				failed = time.Now()
				return errors.New("broken")
			})
		}()
		<-leading
		want(t, "Run", second.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			want(t, "vacant for less than a second", time.Since(failed) < time.Second, true)
			<-ctx.Done()
			return nil
		}), nil)
		want(t, "failures", failures, 1)
	})
}

// TestLostTermIsNoFailureOfWork: trust ends, and the work returns, before the engine has ended
// the term.
func TestLostTermIsNoFailureOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		failures := 0
		e, rec := elect(t, node, tenure.ElectionConfig{WorkRetry: retry.Func(func(retry.Failure) (time.Duration, bool) {
			failures++
			return time.Hour, true
		})})
		terms := 0
		err := e.Run(t.Context(), func(ctx context.Context, term *tenure.Term) error {
			if terms++; terms == 2 {
				return tenure.Done
			}
			time.AfterFunc(time.Second, db.last().kill) // the engine ends the term
			tenure.EndTrust(term)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		wantError(t, "Run", err, nil)
		want(t, "lost terms that count as failures of work", failures, 0)
		wantError(t, "lost", rec.errorOf(tenure.EventLost), tenure.ErrSessionLost)
	})
}

// TestGivingUpLostTermIsALoss: trust ends, and the role is given up, before the engine has ended
// the term.
func TestGivingUpLostTermIsALoss(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, e *tenure.Election, lose func(*tenure.Term)) error{
		"Resign": func(t *testing.T, e *tenure.Election, lose func(*tenure.Term)) error {
			term, err := e.Campaign(t.Context())
			wantError(t, "Campaign", err, nil)
			lose(term)
			return term.Resign(t.Context())
		},
		"StepDown": func(t *testing.T, e *tenure.Election, lose func(*tenure.Term)) error {
			lose(lead(t, e))
			return e.StepDown(t.Context())
		},
		"Shutdown": func(t *testing.T, e *tenure.Election, lose func(*tenure.Term)) error {
			lose(lead(t, e))
			return e.Shutdown(t.Context())
		},
		"Close": func(t *testing.T, e *tenure.Election, lose func(*tenure.Term)) error {
			lose(lead(t, e))
			return e.Node().Close(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db)
				defer closeNode(t, node)
				e, rec := elect(t, node, tenure.ElectionConfig{})
				err := run(t, e, func(term *tenure.Term) {
					time.AfterFunc(time.Second, db.last().kill) // the engine ends the term
					tenure.EndTrust(term)
				})
				wantError(t, name, err, nil)
				wantError(t, "cause of the loss", rec.errorOf(tenure.EventLost), tenure.ErrSessionLost)
			})
		})
	}
}

// Terms that were lost early do not end a series of failures; a long term does.
func TestWorkRetryBeginsAgainAfterLongTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		var seen []retry.Failure
		e, _ := elect(t, node, tenure.ElectionConfig{WorkRetry: retry.Func(func(failure retry.Failure) (time.Duration, bool) {
			seen = append(seen, failure)
			return 7 * time.Second, len(seen) < 5
		})})
		broken := errors.New("broken")
		var begun []time.Duration
		start := time.Now()
		err := e.Run(t.Context(), func(ctx context.Context, _ *tenure.Term) error {
			begun = append(begun, time.Since(start).Round(time.Second))
			switch len(begun) {
			case 2:
				db.last().kill()
				<-ctx.Done()
				return ctx.Err()
			case 4:
				time.Sleep(time.Minute)
			case 5:
				return nil
			}
			return broken
		})
		wantError(t, "Run", err, tenure.ErrStopped)
		var attempts []int
		for _, failure := range seen {
			attempts = append(attempts, failure.Attempt)
		}
		if !slices.Equal(attempts, []int{1, 2, 1, 2, 3}) {
			t.Errorf("attempts %v, at %v", attempts, begun)
		}
		wantError(t, "the first failure", seen[0].LastError, broken)
		want(t, "the fourth failure", seen[3].LastError, nil)
		want(t, "elapsed", seen[3].Elapsed.Round(time.Second), 67*time.Second)
	})
}

func TestWorkRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{WorkRetry: retry.Func(func(retry.Failure) (time.Duration, bool) { return 0, false })})
		broken := errors.New("broken")
		err := e.Run(t.Context(), func(context.Context, *tenure.Term) error { return broken })
		wantError(t, "Run", err, tenure.ErrStopped)
		wantError(t, "Run", err, broken)
		want(t, "held", db.holder("r") == nil, true)
	})
}

func TestPanicOfWorkEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		func() {
			defer func() { want(t, "panic", recover(), any("boom")) }()
			_ = e.Run(t.Context(), func(context.Context, *tenure.Term) error { panic("boom") })
		}()
		want(t, "held", db.holder("r") == nil, true)
		want(t, "state", e.State(), tenure.Stopped)
	})
}

// The panic of work whose term was lost passes through Run although there is no
// session and the election does not change any longer.
func TestPanicOfWorkEndsRunAfterTermLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		func() {
			defer func() { want(t, "panic", recover(), any("boom")) }()
			_ = e.Run(t.Context(), func(ctx context.Context, _ *tenure.Term) error {
				db.mu.Lock()
				db.refuse = tenure.ErrConnection
				db.mu.Unlock()
				db.last().kill()
				<-ctx.Done()
				synctest.Wait() // the engine has done what it can
				panic("boom")
			})
		}()
		want(t, "state", e.State(), tenure.Stopped)
	})
}

func TestElectionCannotBeStartedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		wantError(t, "Run", e.Run(t.Context(), nil), tenure.ErrAlreadyStarted)
		_, err := e.Campaign(t.Context())
		wantError(t, "Campaign", err, tenure.ErrAlreadyStarted)
	})
}

func TestParticipateShutsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		broken := errors.New("broken")
		err := e.Participate(t.Context(), func(ctx context.Context) error {
			_, err := e.WaitForLeadership(ctx)
			return errors.Join(err, broken)
		})
		wantError(t, "Participate", err, broken)
		want(t, "state", e.State(), tenure.Stopped)
	})
}

func TestStartStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		ctx, cancel := context.WithCancelCause(t.Context())
		_ = e.Start(ctx)
		term, _ := e.WaitForLeadership(t.Context())
		deploy := errors.New("deploying")
		cancel(deploy)
		<-term.Context().Done()
		wantError(t, "cause", context.Cause(term.Context()), deploy)
		synctest.Wait()
		want(t, "state", e.State(), tenure.Stopped)
	})
}

func TestIsLeaderDoesNotAllocate(t *testing.T) {
	node := open(t, newDatabase())
	defer closeNode(t, node)
	e, _ := elect(t, node, tenure.ElectionConfig{})
	lead(t, e)
	if n := testing.AllocsPerRun(1000, func() { _ = e.IsLeader() }); n != 0 {
		t.Errorf("IsLeader allocates %v times", n)
	}
}

func BenchmarkIsLeader(b *testing.B) {
	node, err := tenure.Open(b.Context(), newDatabase(), tenure.Config{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer node.Close(context.Background())
	e, _ := node.Election(tenure.NamedRole("r"))
	_ = e.Start(context.Background())
	if _, err := e.WaitForLeadership(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !e.IsLeader() {
			b.Fatal("lost")
		}
	}
}
