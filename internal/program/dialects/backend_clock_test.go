package dialects

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// shiftedClock is the machine's clock with another wall time.
type shiftedClock struct {
	clocks.Clock
	by time.Duration
}

func (c shiftedClock) Now() clocks.Instant {
	now := c.Clock.Now()
	now.Wall = now.Wall.Add(c.by)
	return now
}

// Nodes whose clocks are hours apart elect one leader and report the times of the
// database's clock.
func TestBackendIgnoresClocksOfNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.Lease = 4 * time.Second
		c.config.Clock = shiftedClock{clocks.System(), -time.Hour}
		behind := c.join("behind")
		c.config.Clock = shiftedClock{clocks.System(), time.Hour}
		ahead := c.join("ahead")
		a, b := behind.campaign(backendRole), ahead.campaign(backendRole)
		oneLeader(t, a, b)
		begun := time.Now()
		term := leaderOf(t, 0, a, b)
		for range 3 {
			if off := term.AcquiredAt().Sub(begun); off < -slack || off > patience {
				t.Errorf("term %d is said to have begun %v after the test did", term.Number(), off)
			}
			if left := term.Remaining(); left > c.config.Lease {
				t.Errorf("%v of trust are left in a lease of %v", left, c.config.Lease)
			}
			leaders, err := behind.backend.Leaders(soon(t), backendRole)
			if err != nil || len(leaders) != 1 {
				t.Fatalf("the leaders are %v, %v", leaders, err)
			}
			if l := leaders[0]; l.ValidFor > c.config.Lease || time.Until(l.LeaseUntil) > c.config.Lease || !l.Valid() {
				t.Errorf("the lease is said to run for %v, until %v", l.ValidFor, l.LeaseUntil)
			}
			<-time.After(c.config.Lease)
			if !term.Valid() {
				t.Fatalf("term %d did not outlive its lease", term.Number())
			}
			leader := a
			if b.IsLeader() {
				leader = b
			}
			last := term.Number()
			if err := leader.StepDown(soon(t)); err != nil {
				t.Fatal(err)
			}
			term = leaderOf(t, last, a, b)
		}
	})
}

// After a server change no term begins for the longest lease of all sessions, because any
// node can be the leader whose last heartbeats are missing.
// Set by hand: SQLite has one server. TestBackendSessionEndsOnAnotherServer changes the
// name of a real one.
func TestBackendServerChangeAwaitsLongestLease(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.CheckInterval = 200 * time.Millisecond
		c.config.Lease = 5 * time.Second
		longest := c.config.Lease
		c.join("long")
		c.config.Lease = 2 * time.Second
		short := c.join("short")
		execute(t, k.connect(t, c.source), "UPDATE tenure_lease_news SET server = 'another'")
		changed := time.Now()
		leads(t, short.campaign(backendRole))
		if waited := time.Since(changed); waited < longest || waited > longest+2*slack {
			t.Errorf("a term began after %v; want the longest lease, %v, and little more", waited, longest)
		}
	})
}

// The last term of a role may be missing on another server, so each next term settles.
func TestBackendServerChangeAwaitsSettle(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		const settle = time.Hour
		db := k.open(t)
		next := opensWith(t, newBackend(t, db, k.dialect, lease.Config{}), "next",
			tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Second, Settle: settle})
		execute(t, db, "UPDATE tenure_lease_news SET server = 'another'")
		if attempt := mustTry(t, next, tenure.AcquireRequest{Role: tenure.NamedRole(backendRole)})[0]; attempt.RetryIn < settle/2 {
			t.Errorf("%+v; want it to settle for %v", attempt, settle)
		}
	})
}

// Set by hand: SQLite has one server. TestBackendSessionEndsOnAnotherServer changes the
// name of a real one.
func TestBackendServerChangeAwaitsOneLease(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		c.config.CheckInterval = 200 * time.Millisecond
		a, b := c.join("a"), c.join("b").campaign(backendRole)
		leads(t, b)
		e := a.campaign(backendRole)
		db := k.connect(t, c.source)
		own := value(t, db, "SELECT server FROM tenure_lease_news")
		execute(t, db, "UPDATE tenure_lease_news SET server = 'another'", "UPDATE tenure_lease_seats SET server = 'another'")
		changed := time.Now()
		if err := b.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		term := leads(t, e)
		if waited := time.Since(changed); waited < c.config.Lease || waited > 2*c.config.Lease+slack {
			t.Errorf("a term began after %v; want one lease of %v, and little more", waited, c.config.Lease)
		}
		if now := value(t, db, "SELECT server FROM tenure_lease_news"); now != own {
			t.Errorf("the server's name is %q, not %q again", now, own)
		}
		last := term.Number()
		begun := time.Now()
		if err := e.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(soon(t)); err != nil {
			t.Fatal(err)
		}
		if next := leads(t, b); next.Number() <= last || time.Since(begun) > slack {
			t.Errorf("then term %d follows term %d after %v", next.Number(), last, time.Since(begun))
		}
	})
}

// A session belongs to the server on which it was opened: another server can lack terms
// that the session treats as valid.
func TestBackendSessionEndsOnAnotherServer(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{})
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.dialect == lease.MySQL })]
	c := clusterOn(t, k, server.DSN(server.Database(t)))
	c.config.Lease, c.config.FailoverWait = 3*time.Second, 6*time.Second // the old session's lease expires before
	c.config.CheckInterval = 200 * time.Millisecond
	db := k.connect(t, c.source)
	db.SetConnMaxLifetime(time.Millisecond) // connections keep the server's name
	a := c.joinOn("a", db).campaign(backendRole)
	term := leads(t, a)
	changed := time.Now()
	server.Execute(t, "SET GLOBAL server_id = 4711")
	if cause := ended(t, term); !errors.Is(cause, tenure.ErrSuperseded) {
		t.Errorf("the term ended with %v; want ErrSuperseded", cause)
	}
	next := leaderOf(t, term.Number(), a)
	if waited := time.Since(changed); waited < c.config.FailoverWait {
		t.Errorf("term %d began after %v; want %v at least", next.Number(), waited, c.config.FailoverWait)
	}
}
