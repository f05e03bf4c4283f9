package tenure_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// Code of the program that ends its goroutine, as a failing assertion of a test library
// does, costs the node no more than a panic.

func TestCallbackThatExitsDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		e, err := node.Election(tenure.NamedRole("r"))
		if err != nil {
			t.Fatal(err)
		}
		e.OnAcquired(func(*tenure.Term) { runtime.Goexit() })
		var after recorder
		e.OnEvent(after.record)
		lead(t, e)
		synctest.Wait()
		want(t, "events that have not been delivered", node.Stats().CallbacksWaiting, 0)
		want(t, "age of the oldest event", node.Stats().OldestCallbackAge, time.Duration(0))
		want(t, "callbacks that panicked", node.Stats().CallbackPanics, uint64(1))
		if err := after.errorOf(tenure.EventError); err == nil || !strings.Contains(err.Error(), "runtime.Goexit") {
			t.Errorf("the error callbacks got %v", err)
		}
		closeNode(t, node)
		if !strings.HasSuffix(after.summary(), "stopped") {
			t.Errorf("the next function got %s", after.summary())
		}
	})
}

func TestRetryStrategyThatExitsIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.silent = true
		db.seize("r")
		var asked atomic.Int64
		exits := retry.Func(func(retry.Failure) (time.Duration, bool) {
			asked.Add(1)
			runtime.Goexit()
			return 0, false
		})
		node := open(t, db, func(c *tenure.Config) { c.Retry = exits })
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		_ = e.Start(t.Context())
		time.Sleep(time.Minute)
		if n := asked.Load(); n < 10 {
			t.Errorf("the strategy was asked %d times in a minute", n)
		}
		db.free("r")
		time.Sleep(10 * time.Second)
		want(t, "leads the vacant role", e.IsLeader(), true)

		db.mu.Lock()
		db.refuse = errors.New("the server is starting up")
		db.mu.Unlock()
		db.last().kill()
		time.Sleep(time.Minute)
		db.mu.Lock()
		db.refuse = nil
		db.mu.Unlock()
		time.Sleep(10 * time.Second)
		want(t, "leads after the server has returned", e.IsLeader(), true)
	})
}

func TestLoadIsMeasuredAgainAfterAnExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		var calls atomic.Int64
		node := open(t, db, func(c *tenure.Config) {
			c.Load = func() tenure.Load {
				n := int(calls.Add(1))
				if n == 2 {
					runtime.Goexit()
				}
				return tenure.Load{Jobs: n}
			}
		})
		defer closeNode(t, node)
		time.Sleep(time.Minute)
		db.last().set(func(c *conn) {
			if c.load.Jobs < 3 {
				t.Errorf("the heartbeats publish the figures of call %d of %d", c.load.Jobs, calls.Load())
			}
		})
	})
}

func TestOfferThatIsAnsweredWithAnExitIsDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		defer node.OnOffer(func(string) bool { runtime.Goexit(); return true })()
		answered := false
		go func() { // as the session's goroutine
			want(t, "campaigns", db.last().options.Campaigns("r"), false)
			answered = true
		}()
		synctest.Wait()
		want(t, "the goroutine of the session lives", answered, true)
	})
}

// The registry shows the status that the node has, although the function failed.
func TestFunctionOfOnDrainMayFailInAnyWay(t *testing.T) {
	for name, fail := range map[string]func(){
		"exits":  runtime.Goexit,
		"panics": func() { panic("on purpose") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newRegistry()
				var log strings.Builder
				node := open(t, db, func(c *tenure.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				node.OnDrain(func(context.Context, tenure.Request) error {
					fail()
					return nil
				})
				_ = db.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID()})
				synctest.Wait()
				want(t, "writes of the node's status", db.last().count("active"), 1)
				closeNode(t, node)
				if !strings.Contains(log.String(), "handling a request for the node failed") {
					t.Errorf("the log does not show the failure: %s", &log)
				}
			})
		})
	}
}

func TestLoggerThatExitsDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		handler := &exitingHandler{Handler: slog.NewTextHandler(&log, nil)}
		node := open(t, newDatabase(), func(c *tenure.Config) { c.Logger = slog.New(handler) })
		node.Logger().Info("the last record")
		begun := time.Now()
		closeNode(t, node)
		want(t, "time that Close waited for the log", time.Since(begun), time.Duration(0))
		if got := log.String(); !strings.Contains(got, "the last record") || !strings.Contains(got, "log records were lost") {
			t.Errorf("the log: %s", got)
		}
	})
}

// exitingHandler ends the goroutine of the first record.
type exitingHandler struct {
	slog.Handler
	exited atomic.Bool
}

func (h *exitingHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.exited.CompareAndSwap(false, true) {
		runtime.Goexit()
	}
	return h.Handler.Handle(ctx, r)
}

func (h *exitingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
