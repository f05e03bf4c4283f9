package tenure_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// slowBackend takes long to open a session, and says so if it extends.
type slowBackend struct {
	*database
	takes   time.Duration
	extends bool
	options tenure.SessionOptions // the last one
}

func (b *slowBackend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	b.options = options
	if b.extends {
		options.Extend(time.Hour)
		defer options.Extend(0)
	}
	select {
	case <-time.After(b.takes):
		return b.database.Open(ctx, options)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Opening a session has a time limit, which a step that takes longer can
// extend.
func TestOpenTimeoutBoundsOpening(t *testing.T) {
	for _, test := range []struct {
		takes   time.Duration
		extends bool
		opens   bool
	}{
		{9 * time.Second, false, true},
		{11 * time.Second, false, false},
		{59 * time.Minute, true, true},
		{61 * time.Minute, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			db := &slowBackend{newDatabase(), test.takes, test.extends, tenure.SessionOptions{}}
			ctx, cancel := context.WithTimeout(t.Context(), max(15*time.Second, test.takes+time.Second))
			defer cancel()
			node, err := tenure.Open(ctx, db, tenure.Config{Name: "n", Logger: quiet})
			if test.opens != (err == nil) {
				t.Errorf("opening in %v, extending %t: %v", test.takes, test.extends, err)
			}
			if err == nil {
				closeNode(t, node)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error does not match context.DeadlineExceeded: %v", err)
			}
		})
	}
}

// Opening may take longer the longer that lasts. Otherwise no node would ever open a session
// while many do so at the same time, as after a restart of the server. A node is open within
// three times as long as an opening takes that has enough time.
func TestOpenTimeoutGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &slowBackend{newDatabase(), 50 * time.Second, false, tenure.SessionOptions{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began, most := time.Now(), 3*db.takes
		node, err := tenure.Open(ctx, db, tenure.Config{Logger: quiet})
		if took := time.Since(began); err != nil || took > most {
			t.Fatalf("a session that takes %v to open: the node was open after %v (error %v), want at most %v", db.takes, took, err, most)
		}
		closeNode(t, node)
	})
}

// hangingBackend cannot be reached before a time, and then hangs.
type hangingBackend struct {
	*database
	since time.Time
	took  []time.Duration // how long each attempt waited
}

func (b *hangingBackend) Open(ctx context.Context, _ tenure.SessionOptions) (tenure.Session, error) {
	begun := time.Now()
	if begun.Before(b.since) {
		return nil, tenure.ErrConnection
	}
	<-ctx.Done()
	b.took = append(b.took, time.Since(begun))
	return nil, ctx.Err()
}

// Only attempts that took too long make the limit grow: when a server that was unreachable
// for an hour is back and hangs, another may answer.
func TestOpenTimeoutGrowsAfterSlowAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &hangingBackend{newDatabase(), time.Now().Add(time.Hour), nil}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		_, err := tenure.Open(ctx, db, tenure.Config{Logger: quiet})
		wantError(t, "a server that hangs", err, context.DeadlineExceeded)
		took := db.took[:len(db.took)-1] // ctx ended the last one
		want(t, "the first attempt after failures that were quick", took[0], 10*time.Second)
		want(t, "last", took[len(took)-1], 2*time.Minute)
		if !slices.IsSorted(took) {
			t.Errorf("the attempts took %v", took)
		}
	})
}

// A failed first heartbeat is repeated on the same session.
func TestFailedFirstHeartbeatIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, failures := newDatabase(), 3
		db.prepare = func(c *conn) {
			c.onHeartbeat = func() error {
				if failures--; failures >= 0 {
					return errors.New("canceling statement due to statement timeout")
				}
				return nil
			}
		}
		node := open(t, db)
		defer closeNode(t, node)
		want(t, "sessions opened", db.opened, 1)
		want(t, "heartbeats", db.last().count("heartbeat"), 4)
	})
}

// Repeated failures with one cause emit one event. Another cause, or the same
// one after a success, emits another.
func TestRepeatedCauseEmitsOneErrorEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Pointer[error]
		db := newDatabase()
		db.prepare = func(c *conn) {
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				if err := fails.Load(); *err != nil {
					return &tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: *err}
				}
				return &tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
			}
		}
		node := open(t, db, func(c *tenure.Config) { c.Retry = retry.FixedInterval{Interval: time.Second} })
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		events := func() uint64 { return node.Stats().Events[tenure.EventError] }
		stalled, missing := errors.New("statement timeout"), errors.New("permission denied")
		for i, step := range []struct {
			fails  error
			events uint64
		}{{stalled, 1}, {missing, 2}, {stalled, 3}, {nil, 3}, {stalled, 4}} {
			fails.Store(&step.fails)
			_ = e.Start(t.Context())
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if got := events(); got != step.events {
				t.Errorf("after step %d: %d events of errors, want %d", i, got, step.events)
			}
		}
	})
}
