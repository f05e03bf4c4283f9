package dialects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease"
)

// takersLease is so long that only leases that a test ages expire.
const takersLease = time.Hour

// taker is a session without an engine: the test calls its methods.
type taker struct {
	tenure.Session
	t    *testing.T
	kind kind
	db   *sql.DB // not the session's own
	id   uuid.UUID
}

// takerOn opens a session of a node on a pool.
func takerOn(t *testing.T, k kind, source string, pool *sql.DB, id uuid.UUID) *taker {
	t.Helper()
	session, err := newBackend(t, pool, k.dialect, lease.Config{}).Open(soon(t), tenure.SessionOptions{
		Node:   tenure.NodeInfo{ID: id, Name: "node", Host: "localhost"},
		Timing: tenure.Timing{Lease: takersLease, RefreshInterval: takersLease / 3},
		Clock:  clocks.System(), Logger: slog.New(slog.DiscardHandler), MaySend: func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Abort)
	return &taker{session, t, k, k.connect(t, source), id}
}

// want requests a role and checks the outcome.
func (s *taker) want(what, role string, want tenure.Outcome) tenure.AcquireResult {
	s.t.Helper()
	attempts, err := s.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole(role)}})
	if err != nil || attempts[0].Outcome != want {
		s.t.Fatalf("%s: %+v, %v; want outcome %d", what, attempts, err, want)
	}
	return attempts[0]
}

// age moves the end of the session's lease earlier.
// Set by hand: a lease that a busy machine cannot miss takes minutes.
func (s *taker) age(by time.Duration) {
	s.t.Helper()
	execute(s.t, s.db, fmt.Sprintf("UPDATE tenure_lease_sessions SET expires_at = expires_at - %d WHERE incarnation = %d",
		by.Microseconds(), s.Incarnation()))
}

// whileReading opens a pool. A stored function is called once, after the database has
// answered a query that contains text and before the answer is read.
func (k kind) whileReading(t *testing.T, source, text string) (*sql.DB, *atomic.Pointer[func()]) {
	t.Helper()
	call := &atomic.Pointer[func()]{}
	if k.dialect == lease.MySQL {
		source += "?interpolateParams=true" // or the driver prepares statements
	}
	db := sql.OpenDB(tapped{
		driver: k.connect(t, source).Driver(), source: source, ran: func(string) error { return nil },
		asked: func(query string) {
			if !strings.Contains(query, text) {
				return
			}
			if call := call.Swap(nil); call != nil {
				(*call)()
			}
		},
	})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, call
}

// The database reserves a role for the whole lease, counted from the opening of
// the session or from its last heartbeat.
func TestBackendKeepsTheWholeLease(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(s *taker) error{
		"an opening":  func(*taker) error { return nil },
		"a heartbeat": func(s *taker) error { _, err := s.Heartbeat(tenure.Load{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onKinds(t, direct, func(t *testing.T, k kind) {
				source := k.source(t)
				holder := takerOn(t, k, source, k.connect(t, source), uuid.New())
				rival := takerOn(t, k, source, k.connect(t, source), uuid.New())
				holder.want("a free role", "r", tenure.OutcomeGranted)
				if err := begin(holder); err != nil {
					t.Fatal(err)
				}
				holder.age(takersLease - time.Minute)
				rival.want("Invariant 1: a minute before the lease expires", "r", tenure.OutcomeHeld)
				holder.age(time.Minute)
				rival.want("after the lease has expired", "r", tenure.OutcomeGranted)
			})
		})
	}
}

// A session that has ended acquires no role, even before it detects its end: another
// session could acquire the role immediately.
func TestBackendEndedSessionAcquiresNoRole(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, ended, rival *taker, source string){
		"its lease has expired": func(_ *testing.T, ended, rival *taker, _ string) {
			ended.age(takersLease)
			rival.want("after the lease has expired", "held", tenure.OutcomeGranted)
		},
		"its node has a newer session": func(t *testing.T, ended, _ *taker, source string) {
			takerOn(t, ended.kind, source, ended.db, ended.id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onKinds(t, direct, func(t *testing.T, k kind) {
				source := k.source(t)
				ended := takerOn(t, k, source, k.connect(t, source), uuid.New())
				rival := takerOn(t, k, source, k.connect(t, source), uuid.New())
				ended.want("a free role", "held", tenure.OutcomeGranted)
				end(t, ended, rival, source)
				attempts, err := ended.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole("free")}})
				if !errors.Is(err, tenure.ErrSessionLost) {
					t.Errorf("Invariant 1: a session that has ended tried to take a role: %+v, %v; want ErrSessionLost", attempts, err)
				}
				rival.want("the role that it tried to take", "free", tenure.OutcomeGranted)
			})
		})
	}
}

// If two sessions have both read that a role is vacant, one of them acquires it.
func TestBackendOneOfTwoSessionsAcquiresARole(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		source := k.source(t)
		pool, reading := k.whileReading(t, source, "lock_key")
		slow := takerOn(t, k, source, pool, uuid.New())
		fast := takerOn(t, k, source, k.connect(t, source), uuid.New())
		first := fast.want("a free role", "r", tenure.OutcomeGranted)
		slow.want("a role that is held", "r", tenure.OutcomeHeld)
		err := fast.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("r"), Term: first.Term, Reason: history.EndResigned}})
		if err != nil {
			t.Fatal(err)
		}
		var second tenure.AcquireResult
		between := func() { second = fast.want("a free role", "r", tenure.OutcomeGranted) }
		reading.Store(&between)
		slow.want("Invariant 1: a role that another session acquired in between", "r", tenure.OutcomeHeld)
		leaders, err := newBackend(t, fast.db, k.dialect, lease.Config{}).Leaders(context.Background(), "r")
		if err != nil || len(leaders) != 1 || leaders[0].NodeID != fast.id || leaders[0].Term != second.Term {
			t.Errorf("leaders: %+v, %v; want node %s in term %d", leaders, err, fast.id, second.Term)
		}
	})
}

// A heartbeat renews a lease that has expired, as long as the end of the session
// is not recorded. Then no session may acquire the role, even one that has read the
// expired lease.
func TestBackendRenewedLeaseDoesNotExpire(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		source := k.source(t)
		pool, reading := k.whileReading(t, source, "lock_key")
		rival := takerOn(t, k, source, pool, uuid.New())
		holder := takerOn(t, k, source, k.connect(t, source), uuid.New())
		holder.want("a free role", "r", tenure.OutcomeGranted)
		rival.want("a role that is held", "r", tenure.OutcomeHeld)
		holder.age(takersLease)
		beat := func() {
			t.Helper()
			if _, err := holder.Heartbeat(tenure.Load{}); err != nil {
				t.Fatalf("heartbeat: %v", err)
			}
		}
		reading.Store(&beat)
		rival.want("Invariant 1: a role whose holder has just renewed its lease", "r", tenure.OutcomeHeld)
		beat()
	})
}

// The age of a lease that was read counts from before the query. From the answer on, the
// lease would seem valid for too long, by the time of the query.
func TestLeasesAgeFromTheQuery(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		source := k.source(t)
		db, reading := k.whileReading(t, source, "expires_at")
		elections := newStore(t, k, db, takersLease)
		backend := newBackend(t, db, k.dialect, lease.Config{})
		takerOn(t, k, source, k.connect(t, source), uuid.New()).want("a free role", "r", tenure.OutcomeGranted)
		if _, err := elections.Elect(soon(t), "n", uuid.New()); err != nil {
			t.Fatal(err)
		}
		for name, read := range map[string]func() (readAt time.Time, err error){
			"Store.Leader": func() (time.Time, error) {
				held, err := elections.Leader(soon(t), "n")
				return held.ReadAt, err
			},
			"Backend.Leaders": func() (time.Time, error) {
				leaders, err := backend.Leaders(soon(t), "r")
				if err != nil || len(leaders) != 1 {
					return time.Time{}, fmt.Errorf("leaders: %+v, %w", leaders, err)
				}
				return leaders[0].ReadAt, nil
			},
		} {
			var answered time.Time
			note := func() { answered = time.Now() }
			reading.Store(&note)
			readAt, err := read()
			if err != nil || answered.IsZero() {
				t.Fatalf("%s: %v, answered at %v", name, err, answered)
			}
			if readAt.After(answered) {
				t.Errorf("Invariant 1: %s counts the lease from %v after the database answered", name, readAt.Sub(answered))
			}
		}
	})
}

// A session that is closed while it holds a role releases the role and wakes standbys.
func TestBackendLeavingIsAnnounced(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		source := k.source(t)
		holder := takerOn(t, k, source, k.connect(t, source), uuid.New())
		holder.want("a free role", "r", tenure.OutcomeGranted)
		rival := takerOn(t, k, source, k.connect(t, source), uuid.New())
		rival.want("a role that is held", "r", tenure.OutcomeHeld)
		if err := holder.Close(); err != nil {
			t.Fatal(err)
		}
		if changed, err := rival.Wait(soon(t)); err != nil || !changed {
			t.Errorf("Invariant 7: waiting for a session that has left: changed %t, error %v; want a change", changed, err)
		}
		rival.want("the role of a session that has left", "r", tenure.OutcomeGranted)
	})
}

// A session that has read the old key of a role does not lead it after the key has
// changed, and a session with the new key does.
func TestBackendKeyThatChangesIsCompared(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		source := k.source(t)
		pool, reading := k.whileReading(t, source, "lock_key")
		slow := takerOn(t, k, source, pool, uuid.New())
		other := takerOn(t, k, source, k.connect(t, source), uuid.New())
		first := other.want("a free role", "r", tenure.OutcomeGranted)
		slow.want("a role that is held", "r", tenure.OutcomeHeld)
		backend := newBackend(t, other.db, k.dialect, lease.Config{})
		keyed := tenure.NamedRole("r").WithKey(7)
		if _, _, err := backend.Rekey(t.Context(), keyed); !errors.Is(err, dberr.ErrHasLeader) {
			t.Errorf("while a session leads: %v; want ErrHasLeader", err)
		}
		if err := other.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("r"), Term: first.Term, Reason: history.EndResigned}}); err != nil {
			t.Fatal(err)
		}
		rekey := func() {
			if before, after, err := backend.Rekey(t.Context(), keyed); err != nil || after != "7" || before == after {
				t.Errorf("%q, %q, %v", before, after, err)
			}
		}
		reading.Store(&rekey)
		slow.want("a role whose key changed in between", "r", tenure.OutcomeHeld)
		slow.want("a role with another key", "r", tenure.OutcomeFailed)
		results, err := other.TryAcquire([]tenure.AcquireRequest{{Role: keyed}})
		if err != nil || results[0].Outcome != tenure.OutcomeGranted || results[0].Term <= first.Term {
			t.Errorf("with the new key: %+v, %v; want a term after %d", results, err, first.Term)
		}
		second := other.want("another free role", "s", tenure.OutcomeGranted)
		if err := other.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("s"), Term: second.Term, Reason: history.EndResigned}}); err != nil {
			t.Fatal(err)
		}
		for role, want := range map[tenure.Role]error{
			tenure.NamedRole("unheard-of"): dberr.ErrUnknownRole, tenure.NamedRole("s").WithKey(7): tenure.ErrKeyMismatch,
		} {
			if _, _, err := backend.Rekey(t.Context(), role); !errors.Is(err, want) {
				t.Errorf("%s: %v; want %v", role, err, want)
			}
		}
	})
}
