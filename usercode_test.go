package tenure_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// Code of the program that blocks, panics or calls back must cost the node
// nothing: neither its terms nor the end of their contexts. Where the node's
// mutex would be the victim, the tests run in real time: a bubble cannot wait
// for a mutex, so it would hang instead of failing.

// hang bounds what must happen soon, for machines that are busy.
const hang = 30 * time.Second

// within fails the test if fn does not return.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(hang):
		t.Fatalf("%s did not return", what)
	}
}

// awaitEnd waits for the end of a term's context.
func awaitEnd(t *testing.T, term *tenure.Term) {
	t.Helper()
	select {
	case <-term.Context().Done():
	case <-time.After(hang):
		t.Fatalf("invariant 1: the context of term %d lives on although its trust ended (valid: %t)", term.Number(), term.Valid())
	}
}

// stuckHandler is a log whose reader has stalled once stuck is set.
type stuckHandler struct {
	stuck   atomic.Bool
	entered atomic.Int64
	release chan struct{}
}

func newStuckHandler() *stuckHandler { return &stuckHandler{release: make(chan struct{})} }

func (h *stuckHandler) block() {
	if h.stuck.Load() {
		h.entered.Add(1)
		<-h.release
	}
}

func (h *stuckHandler) Enabled(context.Context, slog.Level) bool {
	h.block()
	return true
}

func (h *stuckHandler) Handle(context.Context, slog.Record) error {
	h.block()
	return nil
}
func (h *stuckHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *stuckHandler) WithGroup(string) slog.Handler      { return h }

// short makes trust end soon.
func short(c *tenure.Config) {
	c.Lease, c.CheckInterval = 500*time.Millisecond, 100*time.Millisecond
}

func TestBlockedLoggerDelaysNothing(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*conn, *tenure.Node){
		"heartbeats fail": func(c *conn, _ *tenure.Node) {
			c.set(func(c *conn) { c.onHeartbeat = func() error { return errors.New("canceling statement") } })
		},
		"another election starts": func(c *conn, node *tenure.Node) {
			blocked := make(chan struct{})
			c.set(func(c *conn) { c.onHeartbeat = func() error { <-blocked; return errGone } })
			context.AfterFunc(node.Elections()[0].Term().Context(), func() { close(blocked) })
			other, _ := node.Election(tenure.NamedRole("other"))
			go func() { _ = other.Start(context.Background()) }()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, db := newStuckHandler(), newDatabase()
			node := open(t, db, short, func(c *tenure.Config) { c.Logger = slog.New(handler) })
			defer func() {
				close(handler.release)
				closeNode(t, node)
			}()
			e, err := node.Election(tenure.NamedRole("r"))
			if err != nil {
				t.Fatal(err)
			}
			term := lead(t, e)
			first := db.last()
			handler.stuck.Store(true)
			fails(first, node)
			awaitEnd(t, term)
			within(t, "leading again", func() {
				for {
					if next := e.Term(); next != nil && next.Number() > term.Number() {
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
			within(t, "Stats", func() { node.Stats() })
			if handler.entered.Load() == 0 {
				t.Error("the logger did not block")
			}
		})
	}
}

// Close waits for the last records, but not for a handler that blocks.
func TestCloseDoesNotWaitForBlockedLogger(t *testing.T) {
	t.Parallel()
	handler := newStuckHandler()
	defer close(handler.release)
	node := open(t, newDatabase(), short, func(c *tenure.Config) { c.Logger = slog.New(handler) })
	e, err := node.Election(tenure.NamedRole("r"))
	if err != nil {
		t.Fatal(err)
	}
	lead(t, e)
	handler.stuck.Store(true)
	within(t, "Close", func() {
		if err := node.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	want(t, "state", e.State(), tenure.Stopped)
}

func TestPanickingLoggerDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db, func(c *tenure.Config) { c.Logger = slog.New(panickingHandler{}) })
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		db.last().kill()
		synctest.Wait()
		if next := lead(t, e); next.Number() <= term.Number() {
			t.Errorf("term %d came after term %d", next.Number(), term.Number())
		}
	})
}

type panickingHandler struct{}

func (panickingHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingHandler) Handle(context.Context, slog.Record) error { panic("on purpose") }
func (h panickingHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h panickingHandler) WithGroup(string) slog.Handler           { return h }

func TestUpdateDescriptionPassesPanicOn(t *testing.T) {
	t.Parallel()
	db := newDatabase()
	node := open(t, db, short)
	defer within(t, "Close", func() { closeNode(t, node) })
	e, _ := elect(t, node, tenure.ElectionConfig{})
	term := lead(t, e)
	func() {
		defer func() { want(t, "recovered", recover(), any("on purpose")) }()
		_ = node.UpdateDescription(t.Context(), func(*tenure.Description) { panic("on purpose") })
	}()
	within(t, "Description", func() { want(t, "status", node.Description().Status, tenure.StatusActive) })
	db.last().set(func(c *conn) { c.onHeartbeat = func() error { return errors.New("canceling statement") } })
	awaitEnd(t, term)
}

func TestUpdateDescriptionFunctionMayCallNode(t *testing.T) {
	t.Parallel()
	node := open(t, newDatabase(), short)
	defer within(t, "Close", func() { closeNode(t, node) })
	calls := 0
	within(t, "Describe", func() {
		err := node.UpdateDescription(t.Context(), func(d *tenure.Description) {
			calls++
			node.Stats()
			if calls == 1 {
				_ = node.UpdateDescription(t.Context(), func(d *tenure.Description) { d.HTTPPort = 80 })
			}
			d.Version = node.Description().Version + "2"
		})
		wantError(t, "Describe", err, tenure.ErrUnsupported) // there is no registry
	})
	want(t, "calls", calls, 2)
	want(t, "port", node.Description().HTTPPort, 80)
	want(t, "version", node.Description().Version, "2")
}

// A retry strategy that takes longer than the lease delays only its own
// election.
func TestSlowRetryStrategyDelaysOnlyItsElection(t *testing.T) {
	for name, slow := range map[string]func(retry.Failure) (time.Duration, bool){
		"takes 10 s": func(retry.Failure) (time.Duration, bool) {
			time.Sleep(10 * time.Second)
			return time.Second, true
		},
		"panics": func(retry.Failure) (time.Duration, bool) { panic("on purpose") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newDatabase()
				db.seize("other")
				node := open(t, db)
				defer closeNode(t, node)
				e, _ := elect(t, node, tenure.ElectionConfig{})
				term := lead(t, e)
				var asked atomic.Int64
				other, err := node.ElectionWith(tenure.NamedRole("other"), tenure.ElectionConfig{
					Retry: retry.Func(func(a retry.Failure) (time.Duration, bool) {
						asked.Add(1)
						return slow(a)
					}),
				})
				if err != nil {
					t.Fatal(err)
				}
				_ = other.Start(t.Context())
				time.Sleep(time.Minute)
				want(t, "the term of the other role is valid", term.Valid(), true)
				if asked.Load() < 4 {
					t.Errorf("asked %d times in a minute", asked.Load())
				}
				db.free("other")
				if _, err := other.WaitForLeadership(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// The longest delay that a retry strategy can return is a delay.
func TestLongestDelayOfRetryStrategyIsKept(t *testing.T) {
	never := retry.Func(func(retry.Failure) (time.Duration, bool) { return math.MaxInt64, true })
	t.Run("Retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db := newDatabase()
			db.seize("r")
			node := open(t, db)
			defer closeNode(t, node)
			time.Sleep(time.Minute)
			e, _ := elect(t, node, tenure.ElectionConfig{Retry: never})
			_ = e.Start(t.Context())
			time.Sleep(time.Minute)
			want(t, "the state", e.State(), tenure.Follower)
			if n := db.last().count("try"); n < 1 || n > 10 {
				t.Errorf("%d attempts in a minute", n)
			}
		})
	})
	t.Run("WorkRetry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			node := open(t, newDatabase())
			defer closeNode(t, node)
			e, _ := elect(t, node, tenure.ElectionConfig{WorkRetry: never})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			calls := 0
			_ = e.Run(ctx, func(context.Context, *tenure.Term) error {
				calls++
				time.Sleep(time.Second)
				return errors.New("on purpose")
			})
			want(t, "calls of the work in an hour", calls, 1)
		})
	})
}

// Heartbeats continue, with the last figures, while Config.Load blocks or
// panics.
func TestHeartbeatsContinueWithoutLoad(t *testing.T) {
	release := make(chan struct{})
	for name, fail := range map[string]func(){
		"blocks": func() { <-release },
		"panics": func() { panic("on purpose") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				db := newDatabase()
				var calls atomic.Int64
				node := open(t, db, func(c *tenure.Config) {
					c.Load = func() tenure.Load {
						if n := int(calls.Add(1)); n < 3 {
							return tenure.Load{Jobs: n}
						}
						fail()
						return tenure.Load{}
					}
				})
				defer closeNode(t, node)
				defer func() { close(release) }()
				e, _ := elect(t, node, tenure.ElectionConfig{})
				term := lead(t, e)
				time.Sleep(time.Minute)
				want(t, "the term is valid", term.Valid(), true)
				db.last().set(func(c *conn) { want(t, "jobs", c.load.Jobs, 2) })
				if n := db.last().count("heartbeat"); n < 18 {
					t.Errorf("%d heartbeats in a minute", n)
				}
			})
		})
	}
}

// A figure that no database can store does not end the heartbeats.
func TestLoadIsPublishedWithinItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		figures := tenure.Load{Connections: math.MaxInt64, Jobs: -1, InFlight: 1, CPU: math.NaN(), Memory: math.Inf(1)}
		node := open(t, db, func(c *tenure.Config) { c.Load = func() tenure.Load { return figures } })
		defer closeNode(t, node)
		db.last().set(func(c *conn) {
			want(t, "the load", c.load, tenure.Load{Connections: math.MaxInt32, InFlight: 1, Memory: 1_000_000})
		})
	})
}

// While a session waits for Config.Load, it notices immediately that the server
// has ended it.
func TestSessionLossEndsTrustWhileLoadBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		blocked, release := make(chan struct{}), make(chan struct{})
		var calls atomic.Int64
		node := open(t, db, func(c *tenure.Config) {
			c.Load = func() tenure.Load {
				if calls.Add(1) == 2 {
					close(blocked)
					<-release
				}
				return tenure.Load{}
			}
		})
		defer closeNode(t, node)
		defer func() { close(release) }()
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		<-blocked
		killed := time.Now()
		db.last().kill()
		<-term.Context().Done()
		want(t, "Invariant 1: time from the loss to the end of the term's context", time.Since(killed), time.Duration(0))
	})
}
