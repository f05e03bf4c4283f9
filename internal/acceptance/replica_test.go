package acceptance_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// A replica that has missed the last terms is promoted: it knows neither their
// numbers nor that any node leads.
func TestTermNumbersIncreaseAfterFailoverToLaggingReplica(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	hosts := fmt.Sprintf("host=%s,%s port=%d,%d user=postgres dbname=postgres sslmode=disable",
		primary.Host, replica.Host, primary.Port, replica.Port)
	c := clusterOn(t, hosts, "public")
	one, two := c.join("one"), c.join("two")
	_, first := c.someoneElse(0, one, two)
	leader, other := one, two
	if first.NodeID() == two.ID() {
		leader, other = two, one
	}

	// The last thing that the replica hears of is a resignation.
	term := giveBack(t, leader, other)
	reader := replica.Conn(t)
	eventually(t, reader, "SELECT to_regclass($1) IS NOT NULL", c.quoted("terms"))
	eventually(t, reader, "SELECT term = $2 AND ended_at IS NULL FROM "+c.quoted("terms")+" WHERE role = $1", role, term.Number())
	stopper := primary.Conn(t)
	execute(t, stopper, "BEGIN")
	execute(t, stopper, "LOCK "+c.quoted("history")) // the resignation is committed, the next term is not
	stepped := make(chan error, 1)
	go func() { stepped <- other.election.StepDown(t.Context()) }()
	eventually(t, reader, "SELECT end_reason = 'resigned' FROM "+c.quoted("terms")+" WHERE role = $1", role)
	replica.Configure(t, map[string]string{"primary_conninfo": "host=127.0.0.1 port=1"})
	admin := primary.Conn(t)
	eventually(t, admin, "SELECT count(*) = 0 FROM pg_stat_replication")
	execute(t, stopper, "COMMIT")
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}

	// What the replica misses.
	_, term = c.someoneElse(term.Number(), one, two)
	for range 3 {
		from, to := one, two
		if term.NodeID() == two.ID() {
			from, to = two, one
		}
		term = giveBack(t, from, to)
	}

	primary.Stop(t, "immediate")
	promoting := time.Now()
	replica.Promote(t)
	promoted := time.Now()
	if row := value[string](t, replica.Conn(t), "SELECT end_reason FROM "+c.quoted("terms")+" WHERE role = $1", role); row != "resigned" {
		t.Fatalf("the replica's row says %q; the test wants it to say that the last leader resigned", row)
	}
	_, next := c.someoneElse(term.Number(), one, two) // the checker compares numbers too
	if waited := next.AcquiredAt().Sub(promoting); waited < lease {
		t.Errorf("a term began %v after the promotion began; want at least the lease of %v", waited, lease)
	}
	if took := time.Since(promoted); took > lease+recovery+slack {
		t.Errorf("the role was led %v after the promotion", took)
	}
}

// While a synchronous standby hangs, a leader cannot know that its heartbeats
// count, whatever a canceled wait pretends.
func TestHangingSynchronousStandbyEndsTrust(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{Synchronous: true})
	c := clusterOn(t, primary.DSN(), "public")
	one, two := c.join("one"), c.join("two")
	leader, term := c.someoneElse(0, one, two)

	admin := primary.Conn(t)
	execute(t, admin, "SET synchronous_commit = local")
	receiver := value[int](t, replica.Conn(t), "SELECT pid FROM pg_stat_wal_receiver")
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := sandbox.Signal(receiver, s); err != nil {
			t.Fatal(err)
		}
	}
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			signal(sandbox.ResumeSignal)
		}
	}
	defer resume()
	hung := time.Now()
	signal(sandbox.PauseSignal)

	// An administrator cancels every wait for the standby.
	const cancel = `
		SELECT count(pg_cancel_backend(pid)) > 0
		FROM pg_stat_activity
		WHERE application_name = 'tenure ' || $1 || ' session' AND wait_event = 'SyncRep'`
	eventually(t, admin, cancel, leader.Name())
	canceled := 1
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; term.Context().Err() == nil && time.Since(hung) < patience; <-tick.C {
		if value[bool](t, admin, cancel, leader.Name()) {
			canceled++
		}
	}
	took := time.Since(hung)
	if took > lease+slack/2 {
		t.Errorf("the leader trusted itself for %v although no heartbeat reached the standby", took)
	}
	t.Logf("the leader gave up after %v, with %d waits canceled", took.Round(time.Millisecond), canceled)
	for until := time.Now().Add(lease); time.Now().Before(until); <-tick.C {
		if one.election.IsLeader() || two.election.IsLeader() {
			t.Fatal("a node leads while the standby hangs")
		}
	}
	resume()
	since := time.Now()
	_, next := c.someoneElse(term.Number(), one, two)
	t.Logf("term %d followed term %d %v after the standby was back", next.Number(), term.Number(), time.Since(since).Round(time.Millisecond))
}

// A session that waits for a synchronous standby is not idle to the server. Only
// this one waits for what does not come: that its changes can be read there.
func TestSilentSessionThatWaitsForStandbyIsTerminated(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{Synchronous: true})
	execute(t, primary.Conn(t), "CREATE ROLE thorough SUPERUSER LOGIN")
	execute(t, primary.Conn(t), "ALTER ROLE thorough SET synchronous_commit = remote_apply")
	c := clusterOn(t, primary.DSN(), "public")
	c.migrate()
	c.dsn = primary.DSNFor("thorough", "postgres")
	s := newSilent(t)
	c.db.Connect = s.connect
	leader := c.join("silent")
	c.db.Connect, c.dsn = nil, primary.DSN()
	term := leader.leads()
	rival := c.join("rival")

	since := time.Now()
	conn := replica.Conn(t)
	s.fallSilent(func(query []byte) []byte {
		// The first statement that waits for the standby is the last that is sent.
		pauseReplay(t, conn)
		return query
	})
	c.awaitBackend(t, s.pid(t), "wait_event = 'SyncRep'")
	rival.leadsWithin(lease+checkInterval, since)
	ended(t, term)
}

// pauseReplay makes a replica keep what it receives unapplied, and returns when it
// does. It may be called from any goroutine.
func pauseReplay(t *testing.T, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := conn.Exec(ctx, "SELECT pg_wal_replay_pause()")
	for state := ""; state != "paused" && err == nil; {
		err = conn.QueryRow(ctx, "SELECT pg_get_wal_replay_pause_state()").Scan(&state)
	}
	if err != nil {
		t.Errorf("pausing the replica: %v", err)
	}
}
