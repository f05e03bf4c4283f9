package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/retry"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open opens a node for a test in a bubble and closes it at its end.
func open(t *testing.T, db tenure.Backend, change ...func(*tenure.Config)) *tenure.Node {
	t.Helper()
	cfg := tenure.Config{Name: "n", Logger: quiet}
	for _, c := range change {
		c(&cfg)
	}
	node, err := tenure.Open(t.Context(), db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func closeNode(t *testing.T, node *tenure.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func elect(t *testing.T, node *tenure.Node, cfg tenure.ElectionConfig) (*tenure.Election, *recorder) {
	t.Helper()
	e, err := node.ElectionWith(tenure.NamedRole("r"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	e.OnEvent(rec.record)
	return e, rec
}

// recorder keeps the events of an election.
type recorder struct {
	mu     sync.Mutex
	events []tenure.Event
}

func (r *recorder) record(event tenure.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// summary returns the events in short: state changes as "a>b".
func (r *recorder) summary() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, event := range r.events {
		word := string(event.Kind)
		if event.Kind == tenure.EventStateChange {
			word = event.From.String() + ">" + event.To.String()
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (r *recorder) forget() {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

func (r *recorder) errorOf(kind tenure.EventKind) error {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.events, func(e tenure.Event) bool { return e.Kind == kind })
	if i < 0 {
		return nil
	}
	return r.events[i].Err
}

func want(t *testing.T, what string, got, wanted any) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func wantError(t *testing.T, what string, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Errorf("%s: got error %v, want %v", what, err, wanted)
	}
}

// lead starts an election and waits until it leads.
func lead(t *testing.T, e *tenure.Election) *tenure.Term {
	t.Helper()
	if err := e.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	term, err := e.WaitForLeadership(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func TestElectionPassesThroughItsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		want(t, "state", e.State(), tenure.Stopped)
		term := lead(t, e)
		want(t, "number", term.Number(), term.AcquiredAt().UnixMilli())
		want(t, "leader", e.IsLeader(), true)
		if err := e.Start(context.Background()); err != nil {
			t.Errorf("Start again: %v", err)
		}
		if err := e.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		want(t, "leader", e.IsLeader(), false)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrStopping)
		want(t, "events", rec.summary(), "stopped>follower follower>acquiring acquiring>leader acquired "+
			"leader>releasing releasing>stopped released stopped")
		want(t, "released", db.last().count("release r shutdown"), 1)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown again: %v", err)
		}
		closeNode(t, node)
		want(t, "left gracefully", db.last().count("close"), 1)
		wantError(t, "Start after Close", e.Start(t.Context()), tenure.ErrClosed)
	})
}

// Trust counts from when the heartbeat was sent, ends on time although the
// session hangs, and stays ended. The connection stays open until the work has
// returned.
func TestTrustEndsWithoutAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		begun := time.Now()
		term := lead(t, e)
		guard, err := term.Guard()
		if err != nil {
			t.Fatal(err)
		}
		first := db.last()
		answer := make(chan struct{})
		first.set(func(c *conn) { c.onHeartbeat = func() error { <-answer; return nil } })
		db.mu.Lock()
		db.refuse = tenure.ErrConnection
		db.mu.Unlock()

		select {
		case <-term.Context().Done():
		case <-time.After(time.Hour):
			t.Error("the context of the term outlives its trust: it is not canceled after an hour; want 9s")
		}
		want(t, "trust lasted", time.Since(begun), 9*time.Second)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrTrustExpired)
		want(t, "leader", e.IsLeader(), false)
		want(t, "remaining", term.Remaining(), time.Duration(0))
		want(t, "connected", node.Connected(), false)
		close(answer) // the late answer
		synctest.Wait()
		want(t, "valid", term.Valid(), false)
		want(t, "connection closed under running work", first.wasAborted(), false)
		want(t, "held", db.holder("r") == first, true)
		guard.Done()
		synctest.Wait()
		want(t, "connection closed after the work", first.wasAborted(), true)
	})
}

func TestHeartbeatsExtendTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		time.Sleep(time.Hour) // on the bubble's clock
		want(t, "valid", term.Valid(), true)
		if n := db.last().count("heartbeat"); n < 1070 || n > 1090 {
			t.Errorf("%d heartbeats in an hour, want about 1080", n)
		}
		if n := db.last().count("try"); n != 1 {
			t.Errorf("a leader of everything tried %d times", n)
		}
	})
}

// A term whose record a crash could undo is followed by a heartbeat, which makes
// the record durable.
func TestHeartbeatFollowsTermThatIsNotDurable(t *testing.T) {
	for _, notDurable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			node := open(t, db)
			defer closeNode(t, node)
			db.last().set(func(c *conn) {
				c.onAcquire = func(role tenure.Role) *tenure.AcquireResult {
					granted := c.take(tenure.AcquireRequest{Role: role})
					granted.NotDurable = notDurable
					return &granted
				}
			})
			before := db.last().count("heartbeat")
			e, _ := elect(t, node, tenure.ElectionConfig{})
			lead(t, e)
			synctest.Wait()
			want(t, "a heartbeat followed", db.last().count("heartbeat") > before, notDurable)
			before = db.last().count("heartbeat")
			synctest.Wait()
			want(t, "heartbeats after that", db.last().count("heartbeat"), before)
		})
	}
}

// A failed heartbeat does not extend trust; one that succeeds after it in time
// does.
func TestFailedHeartbeatDoesNotExtendTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		until := time.Now().Add(8 * time.Second)
		db.last().set(func(c *conn) {
			c.onHeartbeat = func() error {
				if time.Now().Before(until) {
					return errors.New("canceling statement due to lock timeout")
				}
				return nil
			}
		})
		time.Sleep(time.Minute)
		want(t, "the term is valid after heartbeats failed for 8s", term.Valid(), true)
		db.last().set(func(c *conn) { c.onHeartbeat = func() error { return errors.New("canceling statement") } })
		select {
		case <-term.Context().Done():
		case <-time.After(9*time.Second + time.Nanosecond):
			t.Error("invariant 1: trust continues although heartbeats fail")
		}
		db.last().set(func(c *conn) { c.onHeartbeat = nil })
	})
}

func TestWallClockEndsTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &steppedClock{Clock: clocks.System()}
		db := newDatabase()
		node := open(t, db, func(c *tenure.Config) { c.Clock = clock })
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		clock.step(time.Hour) // the machine was suspended
		if e.IsLeader() {
			t.Fatal("invariant 1: the node leads after its machine was suspended for longer than trust")
		}
		clock.step(-time.Hour)
		want(t, "invariant 1: leads again when the wall clock is set back", term.Valid(), false)
		<-term.Context().Done()
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrTrustExpired)
	})
}

type steppedClock struct {
	clocks.Clock
	mu   sync.Mutex
	wall time.Duration
}

func (c *steppedClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += d
}

func (c *steppedClock) Now() clocks.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	now.Wall = now.Wall.Add(c.wall)
	return now
}

func TestSessionLossEndsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		rec.forget()
		db.last().kill()
		<-term.Context().Done()
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrSessionLost)
		wantError(t, "cause", context.Cause(term.Context()), tenure.ErrConnection)
		next, err := e.WaitForLeadership(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want(t, "number grows", next.Number() > term.Number(), true)
		want(t, "events", rec.summary(), "leader>follower lost follower>acquiring acquiring>leader acquired")
	})
}

// A new session gets the time when the last connection ended, unless the server
// may not know of that end.
func TestPreviousSessionEndIsReported(t *testing.T) {
	const pause = 3 * time.Second
	for name, c := range map[string]struct {
		fails error
		known bool
	}{
		"the connection broke": {errGone, true},
		"no answer came":       {fmt.Errorf("%w: %w", errGone, os.ErrDeadlineExceeded), false},
		"it was superseded":    {tenure.ErrSuperseded, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				node := open(t, db, func(c *tenure.Config) { c.Retry = retry.FixedInterval{Interval: pause} })
				defer closeNode(t, node)
				e, _ := elect(t, node, tenure.ElectionConfig{})
				term := lead(t, e)
				want(t, "before the first session", db.last().options.PreviousSessionEnd, clocks.Instant{})
				want(t, "incarnation before the first session", db.last().options.PreviousIncarnation, int64(0))
				want(t, "reopened by the first session", db.last().options.Reopened, false)
				earlier := db.last().Incarnation()
				db.mu.Lock()
				db.refuse = tenure.ErrConnection
				db.mu.Unlock()
				db.last().set(func(s *conn) { s.onHeartbeat = func() error { return c.fails } })
				<-term.Context().Done()
				ended := time.Now()
				synctest.Wait()
				db.mu.Lock()
				db.refuse = nil
				db.mu.Unlock()
				if _, err := e.WaitForLeadership(t.Context()); err != nil {
					t.Fatal(err)
				}
				wanted := time.Time{}
				if c.known {
					wanted = ended
				}
				if got := db.last().options.PreviousSessionEnd.Wall; !got.Equal(wanted) {
					t.Errorf("the previous session ended at %v; want %v", got, wanted)
				}
				want(t, "previous incarnation", db.last().options.PreviousIncarnation, earlier)
				want(t, "reopened", db.last().options.Reopened, true)
			})
		})
	}
}

func TestNoReacquireStopsAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{NoReacquire: true})
		lead(t, e)
		rec.forget()
		db.last().kill()
		want(t, "events of a loss", rec.summary(), "leader>stopped lost stopped")
		lead(t, e) // and it can be started again
		rec.forget()
		if err := e.StepDown(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, "events of a step-down", rec.summary(), "leader>releasing releasing>stopped released stopped")
	})
}

func TestRetryStrategyStopsElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.seize("r")
		var asked []retry.Failure
		node := open(t, db)
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{Retry: retry.Func(func(a retry.Failure) (time.Duration, bool) {
			asked = append(asked, a)
			return time.Second, a.Attempt < 3
		})})
		_ = e.Start(t.Context())
		_, err := e.WaitForLeadership(t.Context())
		wantError(t, "WaitForLeadership", err, tenure.ErrStopped)
		wantError(t, "WaitForLeadership", err, tenure.ErrHeld)
		want(t, "asked", len(asked), 3)
		want(t, "elapsed", asked[2].Elapsed, 2*time.Second)
		wantError(t, "last error", asked[2].LastError, tenure.ErrHeld)
		if !strings.HasSuffix(rec.summary(), "acquire_failed follower>stopped stopped") {
			t.Error(rec.summary())
		}
	})
}

// The node's strategy governs reconnecting. If it gives up, the elections stop,
// and a new start makes the node reconnect.
func TestRetryStrategyStopsReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db, func(c *tenure.Config) {
			c.Retry = retry.Func(func(a retry.Failure) (time.Duration, bool) { return time.Second, a.Attempt < 4 })
		})
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		first := lead(t, e)
		db.mu.Lock()
		db.refuse = tenure.ErrConnection
		db.mu.Unlock()
		db.last().kill()
		for e.State() != tenure.Stopped {
			time.Sleep(time.Second)
		}
		want(t, "tries", db.opened, 1+4)
		if !strings.HasSuffix(rec.summary(), "leader>follower lost error follower>stopped stopped") {
			t.Error(rec.summary())
		}
		db.mu.Lock()
		db.refuse = nil
		db.mu.Unlock()
		want(t, "number grows", lead(t, e).Number() > first.Number(), true)
	})
}

func TestOpenFailsAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.refuse = dberr.ErrPooled
		_, err := tenure.Open(t.Context(), db, tenure.Config{Logger: quiet})
		wantError(t, "refused", err, dberr.ErrPooled)
		want(t, "tries", db.opened, 1)
		db.refuse = tenure.ErrConnection
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = tenure.Open(ctx, db, tenure.Config{Logger: quiet})
		wantError(t, "unreachable", err, tenure.ErrConnection)
		if db.opened < 20 {
			t.Errorf("only %d tries in a minute", db.opened)
		}
	})
}
