package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A heartbeat that is stuck behind a row lock fails again and again, and each
// failure restarts the server's idle timer: the lock must not come free while
// the leader trusts itself, and must when it does not.
func TestRoleLockOutlivesTrustOfStuckHeartbeat(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]bool{
		"work that returns":          false,
		"work that ignores its term": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			stuck := c.open("stuck", nil)
			var err error
			if stuck.election, err = stuck.Election(tenure.NamedRole(role)); err != nil {
				t.Fatal(err)
			}
			c.checks.add(stuck)
			over, finished, begun := make(chan struct{}), make(chan error), make(chan *tenure.Term, 1)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				finished <- stuck.election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
					begun <- term
					<-ctx.Done()
					if deaf {
						<-over
					}
					return nil
				})
			}()
			t.Cleanup(func() {
				cancel()
				if err := <-finished; err != nil {
					t.Error(err)
				}
			})
			term := <-begun
			rival := c.join("rival")

			locked := begin(t, c.dsn)
			execute(t, locked, "SELECT FROM "+c.quoted("nodes")+" WHERE id = $1 FOR UPDATE", stuck.ID())
			since := time.Now()
			next, _ := rival.leadsWithin(lease+checkInterval, since)
			if cause := causeOfEnd(t, term); !errors.Is(cause, tenure.ErrTrustExpired) {
				t.Errorf("the stuck term ended because of %v; want the end of trust", cause)
			}
			// The row of the stuck node is still locked.
			if !next.Valid() {
				t.Error("the rival has lost its term already")
			}
			execute(t, locked, "ROLLBACK")
			close(over)
		})
	}
}

// The states in which the server does not count a silent session as idle. Each
// is brought about on the connection of a node that falls silent with it.
func TestSilentSessionThatIsNotIdleIsTerminated(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]func(*testing.T, *cluster, *silent){
		"a message without Sync": func(_ *testing.T, _ *cluster, s *silent) {
			s.fallSilent(withoutSync)
		},
		"COPY": func(t *testing.T, c *cluster, s *silent) {
			s.fallSilent(instead(t, "COPY "+c.quoted("installation")+" FROM STDIN"))
			c.awaitBackend(t, s.pid(t), "state = 'active' AND wait_event = 'ClientRead'")
		},
		"a result that is not read": func(t *testing.T, c *cluster, s *silent) {
			s.fallSilent(instead(t, "SELECT repeat('x', 1 << 20) FROM generate_series(1, 100)"))
			c.awaitBackend(t, s.pid(t), "state = 'active' AND wait_event = 'ClientWrite'")
		},
		"notifications that are not read": func(t *testing.T, c *cluster, s *silent) {
			s.fallSilent(nothing)
			c.notifyUntilStuck(t, s.pid(t))
		},
		"a wait for a row lock": func(t *testing.T, c *cluster, s *silent) {
			execute(t, begin(t, c.dsn), "SELECT FROM "+c.quoted("nodes")+" WHERE name = 'silent' FOR UPDATE")
			s.fallSilent(last)
			c.awaitBackend(t, s.pid(t), "wait_event_type = 'Lock'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a result that is not read" && name != "a wait for a row lock" {
				pgtest.Long(t)
			}
			t.Parallel()
			c := newCluster(t)
			s := newSilent(t)
			c.db.Connect = s.connect
			leader := c.join("silent")
			c.db.Connect = nil
			term := leader.leads()
			rival := c.join("rival")

			since := time.Now() // the last heartbeat was sent before
			stall(t, c, s)
			rival.leadsWithin(lease+checkInterval, since)
			if cause := causeOfEnd(t, term); !errors.Is(cause, tenure.ErrTrustExpired) {
				t.Errorf("the silent node's term ended because of %v; want the end of trust", cause)
			}
		})
	}
}

// notifyUntilStuck sends notifications until a session's buffers are full. It
// sends no more than it must: every other listener reads them before the answers
// to its own statements.
func (c *cluster) notifyUntilStuck(t *testing.T, pid uint32) {
	t.Helper()
	conn := pgtest.Conn(t, c.dsn)
	for sent := 0; ; sent++ {
		execute(t, conn, "SELECT pg_notify($1, $2 || i || repeat('x', 7000)) FROM generate_series(1, 50) i", c.schema+"_tenure_", fmt.Sprint(sent, "/"))
		state := value[string](t, conn, "SELECT coalesce((SELECT coalesce(wait_event, '') FROM pg_stat_activity WHERE pid = $1), 'gone')", pid)
		switch {
		case state == "ClientWrite":
			return
		case state == "gone" || sent == 1000:
			t.Fatalf("after %d notifications the session is not stuck but %s", 50*(sent+1), state)
		}
	}
}

// awaitBackend waits until a condition on a row of pg_stat_activity holds.
func (c *cluster) awaitBackend(t *testing.T, pid uint32, condition string) {
	t.Helper()
	eventually(t, pgtest.Conn(t, c.dsn), "SELECT "+condition+" FROM pg_stat_activity WHERE pid = $1", pid)
}

// The node of such a session lives on and comes back over another network path.
// Its row then names the new session; the old one must end all the same.
func TestStuckSessionOfReturnedNodeIsTerminated(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	c := newCluster(t)
	s := newSilent(t)
	s.returns = true
	c.db.Connect = s.connect
	leader := c.join("silent")
	c.db.Connect = nil
	term := leader.leads()
	rival := c.join("rival")

	since := time.Now()
	s.fallSilent(instead(t, "COPY "+c.quoted("installation")+" FROM STDIN"))
	ended(t, term)
	next, led := c.someoneElse(term.Number(), leader, rival)
	took := time.Since(since)
	t.Logf("%s led term %d after %v", next.Name(), led.Number(), took.Round(time.Millisecond))
	if took > lease+checkInterval+slack {
		t.Errorf("the role was led after %v; the bound is %v", took, lease+checkInterval)
	}
}

// The leader's successor in the ring, which would end its session, has lost its
// watch connection without hearing of it.
func TestSilentLeaderIsTerminatedDespiteSilentWatch(t *testing.T) {
	t.Parallel()
	const long = 4 * lease
	for name, f := range map[string]struct {
		lease   time.Duration
		late    bool // the watch falls silent shortly before the leader is due
		returns bool // the watch connection comes back
	}{
		"the watch connection comes back":             {lease, false, true},
		"it does not":                                 {lease, false, false},
		"it falls silent shortly before the due time": {long, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if f.late || f.returns {
				pgtest.Long(t)
			}
			t.Parallel()
			c := newCluster(t)
			c.config.Lease = f.lease
			s := newSilent(t)
			c.db.Connect = s.connect
			leader := c.join("silent")
			term := leader.leads()
			var refuse atomic.Bool
			c.db.Connect = func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
				if refuse.Load() && strings.HasSuffix(config.RuntimeParams["application_name"], " watch") {
					return nil, errSilent
				}
				return pgx.ConnectConfig(ctx, config)
			}
			rival := c.joinWired("rival", address(pgtest.Shared(t)))
			watch := rival.watch()
			admin := pgtest.Conn(t, c.dsn)
			eventually(t, admin, "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $1", watch.PID())

			since := time.Now() // the last heartbeat was sent before
			refuse.Store(!f.returns)
			if f.late {
				timer := time.AfterFunc((f.lease+margin)*9/10, func() { watch.Stall() })
				t.Cleanup(func() { timer.Stop() })
			} else {
				watch.Stall()
			}
			s.fallSilent(instead(t, "COPY "+c.quoted("installation")+" FROM STDIN"))
			rival.leadsWithin(f.lease+margin+max(checkInterval, f.lease/3), since)
			if cause := causeOfEnd(t, term); !errors.Is(cause, tenure.ErrTrustExpired) {
				t.Errorf("the silent node's term ended because of %v; want the end of trust", cause)
			}
		})
	}
}
