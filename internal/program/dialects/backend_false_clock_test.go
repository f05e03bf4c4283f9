package dialects

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	modernc "modernc.org/sqlite"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
)

// year is by how much a database's clock is ahead.
const year = 365 * 24 * time.Hour

// clocked is a kind of database whose clock a test sets.
type clocked struct {
	kind
	start func(t *testing.T) (source string, set func(offset time.Duration))
}

var clockedKinds = []clocked{
	{kinds[0], func(t *testing.T) (string, func(time.Duration)) {
		server, clock := pgtest.StartWithClock(t, pgtest.Options{})
		return server.Database(t), func(offset time.Duration) { clock.Set(t, offset) }
	}},
	{kind{"SQLite", lease.SQLite, "sqlite clock", sqlite}, func(t *testing.T) (string, func(time.Duration)) {
		return sqlite(t), func(offset time.Duration) { sqliteOffset.Store(int64(offset)) }
	}},
	{kinds[3], func(t *testing.T) (string, func(time.Duration)) {
		pgtest.Long(t)
		server, clock := mariatest.StartWithClock(t, mariatest.Options{})
		return server.DSN(server.Database(t)), func(offset time.Duration) { clock.Set(t, offset) }
	}},
}

// sqliteOffset is by how much the clock of the driver "sqlite clock" is ahead. SQLite reads
// the clock in the process, where libfaketime has no effect on a Go program.
var sqliteOffset atomic.Int64

func init() {
	clock := &modernc.Driver{}
	clock.MustRegisterScalarFunction("julianday", 1, func(*modernc.FunctionContext, []driver.Value) (driver.Value, error) {
		now := time.Now().Add(time.Duration(sqliteOffset.Load()))
		return 2440587.5 + float64(now.UnixMilli())/86400000, nil
	})
	clock.MustRegisterScalarFunction("strftime", -1, func(_ *modernc.FunctionContext, args []driver.Value) (driver.Value, error) {
		if args[1] == nil {
			return nil, nil
		}
		if args[1] != "now" { // '%s' of a time
			at, err := time.Parse(time.DateTime, fmt.Sprint(args[1]))
			return strconv.FormatInt(at.Unix(), 10), err
		}
		now := time.Now().Add(time.Duration(sqliteOffset.Load())).UTC()
		for _, modifier := range args[2:] {
			seconds, err := time.ParseDuration(strings.TrimSuffix(fmt.Sprint(modifier), " seconds") + "s")
			if err != nil {
				return nil, err
			}
			now = now.Add(seconds)
		}
		return now.Format("2006-01-02 15:04:05.000"), nil
	})
	sql.Register("sqlite clock", clock)
}

// Not in parallel: there is one clock for SQLite.
func onClocked(t *testing.T, test func(t *testing.T, c *cluster, set func(time.Duration))) {
	for _, k := range clockedKinds {
		t.Run(k.name, func(t *testing.T) {
			source, set := k.start(t)
			t.Cleanup(func() { sqliteOffset.Store(0) })
			set(year)
			test(t, clusterOn(t, k.kind, source), set)
		})
	}
}

// A role whose leader was killed under a clock that was ahead is led again two leases after
// the clock is right, and no earlier than after one.
func TestLeaseOfFalseClockExpires(t *testing.T) {
	onClocked(t, func(t *testing.T, c *cluster, set func(time.Duration)) {
		c.config.Lease, c.config.CheckInterval = 3*time.Second, 200*time.Millisecond
		timing := tenure.Timing{Lease: c.config.Lease, RefreshInterval: c.config.Lease / 3}
		killed := opensWith(t, newBackend(t, c.kind.connect(t, c.source), c.kind.dialect, lease.Config{}), "killed", timing)
		request := tenure.AcquireRequest{Role: tenure.NamedRole(backendRole)}
		if attempt := mustTry(t, killed, request)[0]; attempt.Outcome != tenure.OutcomeGranted {
			t.Fatalf("%+v", attempt)
		}
		if _, err := killed.Heartbeat(tenure.Load{}); err != nil {
			t.Fatal(err)
		}
		beat := time.Now()
		next := c.join("next").campaign(backendRole)
		killed.Abort() // it says nothing
		set(0)
		leads(t, next)
		if took := time.Since(beat); took < c.config.Lease-100*time.Millisecond || took > 2*c.config.Lease+slack {
			t.Errorf("led again %v after the last heartbeat; want a lease of %v to pass, and no more than two", took, c.config.Lease)
		}
	})
}

// The name of a node that was killed under a clock that was ahead is free a lease after the
// next node has tried to join with it.
func TestNameOfFalseClockIsFree(t *testing.T) {
	onClocked(t, func(t *testing.T, c *cluster, set func(time.Duration)) {
		timing := tenure.Timing{Lease: 2 * time.Second, RefreshInterval: time.Second}
		opensWith(t, newBackend(t, c.kind.connect(t, c.source), c.kind.dialect, lease.Config{}), "node", timing).Abort()
		set(0)
		backend := newBackend(t, c.kind.connect(t, c.source), c.kind.dialect, lease.Config{})
		testkit.Await(t, "that the name is free", func() bool {
			node, err := tenure.Open(soon(t), backend, tenure.Config{Name: "node", UniqueName: true, Logger: c.config.Logger})
			if err != nil {
				return false
			}
			if err := node.Close(soon(t)); err != nil {
				t.Error(err)
			}
			return true
		})
	})
}

// A reservation of a clock that was ahead lasts no longer than twice its time.
func TestLeaseReservationOfFalseClockEnds(t *testing.T) {
	onClocked(t, func(t *testing.T, c *cluster, set func(time.Duration)) {
		timing := tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Second}
		opens := func(name string) tenure.Session {
			return opensWith(t, newBackend(t, c.kind.connect(t, c.source), c.kind.dialect, lease.Config{}), name, timing)
		}
		first, second := opens("first"), opens("second")
		request := tenure.AcquireRequest{Role: tenure.NamedRole(backendRole)}
		term := mustTry(t, first, request)[0].Term
		err := first.Release([]tenure.ReleaseRequest{{
			Role: request.Role, Term: term, Reason: history.EndHandedOver, Target: uuid.New(), Reservation: time.Minute,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if attempt := mustTry(t, second, request)[0]; attempt.Outcome != tenure.OutcomeHeld {
			t.Errorf("a role that is reserved for another node: %+v", attempt)
		}
		set(0)
		if attempt := mustTry(t, second, request)[0]; attempt.Outcome != tenure.OutcomeGranted {
			t.Errorf("a role that was reserved under a false clock: %+v", attempt)
		}
	})
}

// A change of the server under a clock that was ahead makes terms wait for a lease from when
// the clock is right.
// Set by hand: SQLite has one server. TestBackendSessionEndsOnAnotherServer changes the
// name of a real one.
func TestServerChangeOfFalseClockAwaitsOneLease(t *testing.T) {
	onClocked(t, func(t *testing.T, c *cluster, set func(time.Duration)) {
		db := c.kind.connect(t, c.source)
		timing := tenure.Timing{Lease: 3 * time.Second, RefreshInterval: time.Second}
		s := opensWith(t, newBackend(t, db, c.kind.dialect, lease.Config{}), "node", timing)
		execute(t, db, "UPDATE tenure_lease_news SET server = 'another'")
		request := tenure.AcquireRequest{Role: tenure.NamedRole(backendRole)}
		for _, clock := range []string{"ahead", "right"} {
			attempt := mustTry(t, s, request)[0]
			if attempt.Outcome != tenure.OutcomePending || attempt.RetryIn < time.Second || attempt.RetryIn > timing.Lease {
				t.Errorf("with a clock that is %s: %+v; want it to wait for at most %v", clock, attempt, timing.Lease)
			}
			set(0)
		}
	})
}

// The same for the functions that take the caller's transaction. A leader that reads its
// lease after the clock was set right trusts it for no longer than its length.
func TestStoreLeaseOfFalseClockExpires(t *testing.T) {
	const window = 3 * time.Second
	onClocked(t, func(t *testing.T, c *cluster, set func(time.Duration)) {
		s := newStore(t, c.kind, c.kind.connect(t, c.source), window)
		if err := s.Migrate(soon(t)); err != nil {
			t.Fatal(err)
		}
		first, second := uuid.New(), uuid.New()
		if won, err := s.Elect(soon(t), "role", first); err != nil || !won.HeldBy(first) {
			t.Fatalf("%+v, %v", won, err)
		}
		set(0)
		read, err := s.Leader(soon(t), "role")
		if err != nil || !read.HeldBy(first) || read.ValidFor > window || time.Until(read.ExpiresAt) > window+slack {
			t.Errorf("the lease of a false clock: %+v, %v; want at most %v", read, err, window)
		}
		begun := time.Now()
		testkit.Await(t, "the next leader", func() bool {
			won, err := s.Elect(soon(t), "role", second)
			if err != nil {
				t.Fatal(err)
			}
			if won.HeldBy(second) && read.HeldBy(first) {
				t.Error("two candidates trust the lease")
			}
			return won.HeldBy(second)
		})
		if took := time.Since(begun); took < window-100*time.Millisecond || took > window+slack {
			t.Errorf("led again after %v, want the window of %v", took, window)
		}
	})
}
