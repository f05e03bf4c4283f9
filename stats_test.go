package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// figures returns the figures of a node that has one election.
func figures(t *testing.T, node *tenure.Node) (tenure.Stats, tenure.ElectionStats) {
	t.Helper()
	synctest.Wait()
	stats := node.Stats()
	if len(stats.Elections) != 1 {
		t.Fatalf("%d elections", len(stats.Elections))
	}
	return stats, stats.Elections[0]
}

func TestStatsCountElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		time.Sleep(time.Second)
		_, before := figures(t, node)
		want(t, "before the start", before, tenure.ElectionStats{Role: "r", State: tenure.Stopped})

		lead(t, e)
		time.Sleep(2 * time.Second)
		stats, first := figures(t, node)
		want(t, "the first term", first, tenure.ElectionStats{
			Role: "r", State: tenure.Leading, Term: db.terms["r"], LeadingFor: 2 * time.Second, Attempts: 1, Terms: 1,
		})
		want(t, "connected", stats.Connected, true)
		want(t, "trust", stats.TrustRemaining, 6*time.Second) // lease 10 s, margin 1 s
		want(t, "elected", stats.Transitions[tenure.Transition{
			From: tenure.Acquiring, To: tenure.Leading, Reason: "AcquireSucceeded",
		}], uint64(1))
		want(t, "kinds of transitions", len(stats.Transitions), 3)
		want(t, "acquired", stats.Events[tenure.EventAcquired], uint64(1))

		// Its own role again, after a loss: no failover.
		db.last().kill()
		if _, err := e.WaitForLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, again := figures(t, node)
		want(t, "again", again, tenure.ElectionStats{
			Role: "r", State: tenure.Leading, Term: db.terms["r"], Attempts: 2, Terms: 2, Losses: 1, LeadingFor: again.LeadingFor,
		})

		// After a term of another node: a failover.
		if err := e.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.seize("r")
		time.Sleep(time.Minute)
		_, standby := figures(t, node)
		want(t, "standby", standby.Term, int64(0))
		want(t, "held by another", standby.LeadingFor, time.Duration(0))
		if standby.Attempts < 5 {
			t.Errorf("%d attempts in a minute", standby.Attempts)
		}
		db.free("r")
		if _, err := e.WaitForLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, after := figures(t, node)
		want(t, "failovers", after.Failovers, uint64(1))
		want(t, "terms", after.Terms, uint64(3))
		want(t, "losses", after.Losses, uint64(1))

		closeNode(t, node)
		stats, _ = figures(t, node)
		want(t, "connected after Close", stats.Connected, false)
		want(t, "trust after Close", stats.TrustRemaining, time.Duration(0))
	})
}

// An attempt that finds another leader within the reconnect grace is counted.
func TestStatsCountReacquireAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{ReconnectGrace: time.Minute, NoReacquire: true})
		lead(t, e)
		db.last().kill()
		db.mu.Lock()
		db.holders["r"] = &conn{db: db, options: tenure.SessionOptions{Node: tenure.NodeInfo{ID: uuid.New()}}}
		db.mu.Unlock()
		time.Sleep(time.Second)
		_, after := figures(t, node)
		want(t, "after", after, tenure.ElectionStats{Role: "r", State: tenure.Stopped, Attempts: 2, Terms: 1, Losses: 1})
	})
}

func TestStatsCountSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		lead(t, e)
		stats, _ := figures(t, node)
		want(t, "sessions", stats.Sessions, uint64(1))
		want(t, "the first heartbeat", stats.Heartbeats.Count, uint64(1))
		want(t, "vacancies", stats.Vacancies.Count, uint64(1))
		want(t, "of 3 s", stats.Vacancies.Sum, 3*time.Second)
		want(t, "within 5 s", stats.Vacancies.Buckets[5*time.Second], uint64(1))
		want(t, "within 2.5 s", stats.Vacancies.Buckets[2500*time.Millisecond], uint64(0))

		fail := errors.New("out of order")
		db.last().set(func(c *conn) {
			c.onHeartbeat = func() error {
				time.Sleep(20 * time.Millisecond)
				err := fail
				fail = nil
				return err
			}
		})
		time.Sleep(6 * time.Second) // one that fails, and again; then the next one
		stats, _ = figures(t, node)
		want(t, "failed heartbeats", stats.HeartbeatFailures, uint64(1))
		want(t, "heartbeats", stats.Heartbeats.Count, uint64(2))
		want(t, "took", stats.Heartbeats.Sum, 20*time.Millisecond)
		want(t, "within 10 ms", stats.Heartbeats.Buckets[10*time.Millisecond], uint64(1))
		want(t, "within 25 ms", stats.Heartbeats.Buckets[25*time.Millisecond], uint64(2))

		db.mu.Lock()
		db.refuse = errGone
		db.mu.Unlock()
		db.last().kill()
		time.Sleep(time.Second)
		db.mu.Lock()
		db.refuse = nil
		db.mu.Unlock()
		time.Sleep(5 * time.Second)
		stats, _ = figures(t, node)
		want(t, "sessions after an outage", stats.Sessions, uint64(2))
		if stats.SessionFailures < 2 {
			t.Errorf("%d failed attempts in a second", stats.SessionFailures)
		}
	})
}

func TestStatsCountCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		hang := make(chan struct{})
		e.OnAcquired(func(*tenure.Term) {
			<-hang
			panic("on purpose")
		})
		lead(t, e)
		stats, _ := figures(t, node)
		want(t, "waiting behind the first", stats.CallbacksWaiting, 0)
		if err := e.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		stats, _ = figures(t, node)
		want(t, "the oldest event", stats.OldestCallbackAge, 500*time.Millisecond)
		want(t, "delivered", stats.CallbackDelays.Count, uint64(3)) // the way to leader
		want(t, "released", stats.Events[tenure.EventReleased], uint64(1))
		// Two changes of state, the release, and the attempt that leaves the role to others.
		want(t, "waiting", stats.CallbacksWaiting, 6)
		want(t, "panics", stats.CallbackPanics, uint64(0))
		close(hang)
		stats, _ = figures(t, node)
		want(t, "waiting at the end", stats.CallbacksWaiting, 0)
		want(t, "panics at the end", stats.CallbackPanics, uint64(1))
		want(t, "errors", stats.Events[tenure.EventError], uint64(1))
		want(t, "the oldest event at the end", stats.OldestCallbackAge, time.Duration(0))
		want(t, "sum", stats.CallbackDelays.Sum, 7*500*time.Millisecond)
		want(t, "within 250 ms", stats.CallbackDelays.Buckets[250*time.Millisecond], uint64(4)) // and that of the panic
	})
}

func BenchmarkStats(b *testing.B) {
	node, err := tenure.Open(b.Context(), newDatabase(), tenure.Config{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		e, err := node.Election(tenure.NamedRole(fmt.Sprintf("role-%d", i)))
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := e.WaitForLeadership(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		node.Stats()
	}
	if err := node.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
