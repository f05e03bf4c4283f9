package tenure_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// Trust counts from before a heartbeat is sent, including the first one of a
// session: the server's timer may have started then (Invariant 1).
func TestTrustCountsFromBeforeHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		db.prepare = func(c *conn) {
			c.onHeartbeat = func() error {
				time.Sleep(2 * time.Second)
				return nil
			}
		}
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		if left := term.Remaining(); left != 7*time.Second { // 9 s after the first heartbeat was sent
			t.Errorf("invariant 1: trust lasts %v after a first heartbeat of 2s, not 7s", left)
		}
		for beats := db.last().count("heartbeat"); db.last().count("heartbeat") == beats; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second) // the second is acknowledged
		if left := term.Remaining(); left > 7*time.Second {
			t.Errorf("invariant 1: trust lasts %v after a heartbeat of 2s, not 7s", left)
		}
	})
}

// A term that is granted after trust has ended does not begin, whether or not
// the end has been noticed (Invariant 1).
func TestNoTermBeginsAfterTrustEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &steppedClock{Clock: clocks.System()}
		db := newDatabase()
		db.prepare = func(c *conn) {
			if c.number > 1 {
				return
			}
			c.onAcquire = func(tenure.Role) *tenure.AcquireResult {
				clock.step(time.Hour) // the machine was suspended during the call
				return nil
			}
		}
		node := open(t, db, func(c *tenure.Config) { c.Clock = clock })
		defer closeNode(t, node)
		e, rec := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		want(t, "sessions", db.opened, 2)
		acquired := 0
		rec.summary()
		for _, event := range rec.events {
			if event.Kind == tenure.EventAcquired {
				acquired++
				if event.Term != term {
					t.Errorf("invariant 1: term %d began after trust had ended", event.Term.Number())
				}
			}
		}
		want(t, "terms that began", acquired, 1)
	})
}

// limited limits the trust of its sessions to a time since their last heartbeats.
type limited struct {
	tenure.Backend
	clock clocks.Clock
	limit atomic.Int64 // a time.Duration
}

type limitedSession struct {
	tenure.Session
	limited *limited
	until   clocks.Instant
}

func (l *limited) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	session, err := l.Backend.Open(ctx, options)
	return &limitedSession{Session: session, limited: l}, err
}

func (s *limitedSession) Heartbeat(load tenure.Load) (bool, error) {
	pending, err := s.Session.Heartbeat(load)
	s.until = s.limited.clock.Now().Add(time.Duration(s.limited.limit.Load()))
	return pending, err
}

func (s *limitedSession) TrustLimit() clocks.Instant { return s.until }

// Trust ends at the limit of the session, if that is earlier than what its
// heartbeats permit, from the first heartbeat on (Invariant 1).
func TestSessionLimitsTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &limited{Backend: newDatabase(), clock: clocks.System()}
		backend.limit.Store(int64(5 * time.Second))
		node, err := tenure.Open(t.Context(), backend, tenure.Config{Clock: backend.clock, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term := lead(t, e)
		if left := term.Remaining(); left != 5*time.Second {
			t.Errorf("invariant 1: trust lasts %v after the first heartbeat, not 5s", left)
		}
		time.Sleep(4 * time.Second) // the second heartbeat was after 3.33 s
		if left := term.Remaining(); left > 5*time.Second || left < 4*time.Second {
			t.Errorf("invariant 1: trust lasts %v after the second heartbeat, not at most 5s", left)
		}
		backend.limit.Store(int64(time.Hour))
		time.Sleep(4 * time.Second)
		if left := term.Remaining(); left > 9*time.Second {
			t.Errorf("invariant 1: trust lasts %v, longer than the lease - the margin", left)
		}
	})
}
