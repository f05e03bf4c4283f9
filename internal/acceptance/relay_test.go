package acceptance_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of leases

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	leases "github.com/exactly-one/tenure/lease"
)

// A proxy in TCP mode is as good as the network: a leader behind it loses its
// role when the proxy does, and no node overlaps with it for longer than the loss
// takes to be heard.
func TestLeaderBehindHAProxyLosesRoleWithProxy(t *testing.T) {
	pgtest.Long(t)
	start := func(t *testing.T) (*pgtest.Relay, *cluster, *member, *member) {
		t.Helper()
		t.Parallel()
		server := pgtest.Shared(t)
		relay := server.HAProxy(t)
		c := newCluster(t)
		direct := c.dsn
		c.dsn = relay.DSN(direct)
		leader := c.join("leader")
		leader.leads()
		c.dsn = direct
		rival := c.join("rival")
		return relay, c, leader, rival
	}
	t.Run("killed", func(t *testing.T) {
		relay, c, leader, rival := start(t)
		term := leader.leads()
		measured := c.checks.tolerate()
		since := time.Now()
		relay.Kill(t)
		rival.leadsWithin(0, since)
		ended(t, term)
		if overlap := measured(); overlap > slack/4 {
			t.Errorf("Invariant 1: two nodes trusted their terms for %v; both learn of the death of the proxy at the same time", overlap)
		}
		relay.Start(t)
		giveBack(t, rival, leader)
	})
	t.Run("stopped", func(t *testing.T) {
		relay, _, leader, rival := start(t)
		term := leader.leads()
		since := time.Now()
		if err := relay.Signal(sandbox.PauseSignal); err != nil {
			t.Fatal(err)
		}
		defer relay.Signal(sandbox.ResumeSignal) //nolint:errcheck // it is killed all the same
		rival.leadsWithin(lease, since)
		ended(t, term)
		if err := relay.Signal(sandbox.ResumeSignal); err != nil {
			t.Fatal(err)
		}
		giveBack(t, rival, leader)
	})
	t.Run("reloaded", func(t *testing.T) {
		relay, c, leader, _ := start(t)
		term := leader.leads()
		relay.Reload(t)
		const beats = "SELECT last_heartbeat > $2::timestamptz + $3::interval FROM "
		admin := pgtest.Conn(t, c.dsn)
		reloaded := value[time.Time](t, admin, "SELECT clock_timestamp()")
		eventually(t, admin, beats+c.quoted("nodes")+" WHERE id = $1", leader.ID(), reloaded, 2*lease)
		if !term.Valid() {
			t.Error("the leader lost its term although HAProxy ends no connection when it is reloaded")
		}
	})
	t.Run("restarted under all nodes", func(t *testing.T) {
		relay, c, leader, rival := start(t)
		rival.leave()
		c.checks.remove(rival)
		c.dsn = relay.DSN(c.dsn)
		other := c.join("other")
		term := leader.leads()
		relay.Kill(t)
		relay.Start(t)
		since := time.Now()
		c.someoneElse(term.Number(), leader, other)
		if took := time.Since(since); took > recovery+slack {
			t.Errorf("the role was led again %v after the restart; the server itself has forgotten nothing", took)
		}
	})
}

// A proxy that does not pass the end of one side on. If it keeps the server's side
// open, the lease ends it. If it keeps the client's side open, the leader does not
// hear that its locks are free: see Settle.
func TestHalfOpenProxyDelaysTakeoverWithinBounds(t *testing.T) {
	pgtest.Long(t)
	for name, test := range map[string]struct {
		spared       faultwire.Direction // the side that hears nothing
		settle       time.Duration
		bound        time.Duration // until the next term
		mayBothTrust time.Duration
	}{
		"the server's side":              {spared: faultwire.ToServer, bound: lease},
		"the client's side":              {spared: faultwire.ToClient, mayBothTrust: lease - margin},
		"the client's side, with Settle": {spared: faultwire.ToClient, settle: lease, bound: lease},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.config.Settle = test.settle
			leader := c.joinWired("leader", address(pgtest.Shared(t)))
			term := leader.leads()
			leader.watch()
			rival := c.join("rival")
			var measured func() time.Duration
			if test.mayBothTrust > 0 {
				measured = c.checks.tolerate()
			}
			since := time.Now()
			for _, connection := range leader.wire.Connections() {
				connection.Cut(1 - test.spared)
			}
			next, _ := c.someoneElse(term.Number(), leader, rival) // both may be connected again
			took := time.Since(since)
			t.Logf("%s led after %v (bound %v)", next.Name(), took.Round(time.Millisecond), test.bound)
			if took > test.bound+slack {
				t.Errorf("the next term began after %v; the bound is %v", took, test.bound)
			}
			ended(t, term)
			if measured == nil {
				return
			}
			overlap := measured()
			t.Logf("two nodes trusted their terms for %v", overlap)
			if overlap == 0 || overlap > test.mayBothTrust+slack/4 {
				t.Errorf("two nodes trusted their terms for %v; want some time, and at most the trust window of %v", overlap, test.mayBothTrust)
			}
		})
	}
}

// Leases may go through PgBouncer and Pgpool-II. The pooler's death and its hang are
// a database that does not answer: the leader stops, and another node leads when the
// lease is over.
func TestLeasesSurvivePoolerFailures(t *testing.T) {
	pgtest.Long(t)
	pgpool := func(mode string) func(*testing.T, *pgtest.Server) *pgtest.Relay {
		return func(t *testing.T, s *pgtest.Server) *pgtest.Relay {
			return s.Pgpool(t, pgtest.PgpoolOptions{Mode: mode})
		}
	}
	for name, pooler := range map[string]func(*testing.T, *pgtest.Server) *pgtest.Relay{
		"PgBouncer, session":               func(t *testing.T, s *pgtest.Server) *pgtest.Relay { return s.PgBouncer(t, "session") },
		"PgBouncer, transaction":           func(t *testing.T, s *pgtest.Server) *pgtest.Relay { return s.PgBouncer(t, "transaction") },
		"Pgpool-II, streaming_replication": pgpool("streaming_replication"),
		"Pgpool-II, logical_replication":   pgpool("logical_replication"),
		"Pgpool-II, native_replication":    pgpool("native_replication"),
		"Pgpool-II, snapshot_isolation":    pgpool("snapshot_isolation"),
	} {
		t.Run(name, func(t *testing.T) { leasesSurvive(t, pooler) })
	}
}

func leasesSurvive(t *testing.T, pooler func(*testing.T, *pgtest.Server) *pgtest.Relay) {
	t.Helper()
	start := func(t *testing.T, lease time.Duration) (relay *pgtest.Relay, leader *member, rival func() *member) {
		t.Helper()
		t.Parallel()
		server := pgtest.Shared(t)
		relay, dsn, checks := pooler(t, server), server.Database(t), newChecker(t)
		leader = joinByLease(t, checks, "leader", relay.DSN(dsn), lease)
		leader.leads()
		return relay, leader, func() *member { return joinByLease(t, checks, "rival", dsn, lease) }
	}
	for name, end := range map[string]func(*testing.T, *pgtest.Relay){
		"killed": func(t *testing.T, r *pgtest.Relay) { r.Kill(t) },
		"stopped": func(t *testing.T, r *pgtest.Relay) {
			if err := r.Signal(sandbox.PauseSignal); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			relay, leader, join := start(t, lease)
			term, rival := leader.leads(), join()
			since := time.Now()
			end(t, relay)
			rival.leadsWithin(lease+checkInterval, since)
			ended(t, term)
			_ = relay.Signal(sandbox.ResumeSignal) // it may have been killed
		})
	}
	t.Run("restarted", func(t *testing.T) {
		const long = 4 * lease // a pooler takes seconds to start on a busy machine
		relay, leader, _ := start(t, long)
		term := leader.leads()
		relay.Kill(t)
		relay.Start(t)
		for until := time.Now().Add(long + lease); time.Now().Before(until); <-time.After(checkInterval) {
			if !term.Valid() {
				t.Fatal("the leader lost its term although the pooler was back within the lease")
			}
		}
	})
}

// joinByLease opens a node that elects by leases and is a candidate.
func joinByLease(t *testing.T, checks *checker, name, dsn string, lease time.Duration) *member {
	t.Helper()
	db, err := sql.Open("pgx", dsn+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	backend, err := leases.NewBackend(db, leases.PostgreSQL, leases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m := &member{t: t}
	config := tenure.Config{Name: name, Lease: lease, CheckInterval: checkInterval, Logger: logTo(t)}
	if m.Node, err = tenure.Open(checks.steps.Of(ctx), backend, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = m.Node.Close(ctx) // its database may be out of reach
	})
	if m.election, err = m.Node.Election(tenure.NamedRole(role)); err != nil {
		t.Fatal(err)
	}
	checks.add(m)
	if err := m.election.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}
