package dialects

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/lease"
)

// Connections are cut at random, often between a commit and its answer, while leaders
// change all the time. No two nodes lead at the same time, and in the end no role is held
// by a node that does not lead it.
func TestBackendUnacknowledgedCommitsKeepInvariants(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	onBrokenServers(t, 2*time.Second, func(t *testing.T, s brokenServer, c *cluster, _, _ *tenure.Election) {
		const roles, duration = 5, 10 * time.Second
		members := []*member{c.join("c"), c.join("d")}
		pairs := make([][]*tenure.Election, roles)
		for i := range pairs {
			name := fmt.Sprintf("doubtful-%d", i)
			pairs[i] = []*tenure.Election{members[0].election(name), members[1].election(name)}
			oneLeader(t, pairs[i]...)
		}
		ctx, stop := context.WithTimeout(t.Context(), duration)
		defer stop()
		var group sync.WaitGroup
		for _, pair := range pairs {
			for _, e := range pair {
				group.Go(func() { comeAndGo(ctx, e) })
			}
		}
		cuts := cutAtRandom(ctx, s.network)
		group.Wait()

		// One node withdraws from all roles, but keeps its session; whatever it may
		// have taken without knowing is free for the other within a lease.
		for _, pair := range pairs {
			if err := pair[0].Shutdown(soon(t)); err != nil {
				t.Fatal(err)
			}
			if err := pair[1].Start(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		for _, pair := range pairs {
			leads(t, pair[1])
		}
		if took := time.Since(begun); took > c.config.Lease+slack {
			t.Errorf("a role was held without a leader for %v, with a lease of %v", took, c.config.Lease)
		}
		t.Logf("%s: %d connections were cut; all roles were led %v later; terms up to %s", s.kind.name, cuts, time.Since(begun),
			value(t, s.kind.connect(t, s.source), "SELECT max(term) FROM tenure_lease_seats"))
	})
}

// comeAndGo repeatedly starts and stops an election.
func comeAndGo(ctx context.Context, e *tenure.Election) {
	for ctx.Err() == nil {
		if e.Start(context.Background()) != nil {
			return
		}
		select {
		case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
		case <-ctx.Done():
		}
		// An error says that the session was lost, and the term with it.
		_ = e.Shutdown(context.Background())
	}
}

// cutAtRandom cuts a connection every few milliseconds, mostly after the server has
// received the last request, and returns how many it cut.
func cutAtRandom(ctx context.Context, network *faultwire.Proxy) (cuts int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return cuts
		case <-tick.C:
		}
		present := network.Connections()
		if len(present) == 0 {
			continue
		}
		conn := present[rand.IntN(len(present))]
		if rand.IntN(4) > 0 {
			conn.DropAfter(int64(rand.IntN(200)), faultwire.ToClient)
			conn.CloseGracefully(faultwire.ToClient)
		} else {
			conn.Cut()
		}
		cuts++
	}
}

// holdCommits makes commits that change a role so wait in the server, although their
// clients have given up, until the returned function is called.
func holdCommits(t *testing.T, db *sql.DB, name, when string) (let func()) {
	t.Helper()
	gate, err := db.Conn(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	lock := "hashtext('" + name + "')"
	if _, err := gate.ExecContext(soon(t), "SELECT pg_advisory_lock("+lock+")"); err != nil {
		t.Fatal(err)
	}
	execute(t, db, `
CREATE FUNCTION `+name+`() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock(`+lock+`);
            RETURN NULL;
        EXCEPTION WHEN query_canceled OR lock_not_available THEN
            NULL;
        END;
    END LOOP;
END
$$`, `
CREATE CONSTRAINT TRIGGER `+name+` AFTER UPDATE ON tenure_lease_seats
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (`+when+`) EXECUTE FUNCTION `+name+`()`)
	return func() {
		t.Helper()
		if _, err := gate.ExecContext(soon(t), "SELECT pg_advisory_unlock("+lock+")"); err != nil {
			t.Fatal(err)
		}
	}
}

// waitsForTransaction reports whether a session waits for a transaction of another one.
func waitsForTransaction(t *testing.T, db *sql.DB) bool {
	t.Helper()
	return value(t, db, `
SELECT count(*)
FROM pg_locks l
JOIN pg_stat_activity a USING (pid)
WHERE a.datname = current_database() AND l.locktype = 'transactionid' AND NOT l.granted`) == "1"
}

// A commit that began a term is not acknowledged and completes while the node tries again.
// If the node then withdraws, it does not keep the role.
func TestBackendLateCommitKeepsNoRole(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	k := kinds[0]
	source := k.source(t)
	db := k.connect(t, source)
	backend := newBackend(t, db, k.dialect, lease.Config{})
	node := opensWith(t, backend, "late", tenure.Timing{Lease: time.Minute, RefreshInterval: 3 * time.Second})
	other := opens(t, backend, "other")
	request := []tenure.AcquireRequest{{Role: tenure.NamedRole(backendRole)}}

	let := holdCommits(t, db, "begins", "NEW.term > OLD.term")
	if results, err := node.TryAcquire(request); err == nil {
		t.Fatalf("the commit was acknowledged: %+v", results)
	}

	var results []tenure.AcquireResult
	var err error
	again := make(chan struct{})
	go func() {
		defer close(again)
		results, err = node.TryAcquire(request)
	}()
	testkit.Await(t, "the node waits for its earlier commit", func() bool { return waitsForTransaction(t, db) })
	let()
	<-again
	if err != nil {
		t.Fatal(err)
	}

	if result := results[0]; result.Outcome != tenure.OutcomeHeld {
		if err := node.Release([]tenure.ReleaseRequest{{Role: request[0].Role, Term: result.Term}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := node.Heartbeat(tenure.Load{}); err != nil {
		t.Fatal(err)
	}
	if results, err := other.TryAcquire(request); err != nil || results[0].Outcome != tenure.OutcomeGranted {
		t.Errorf("another node: %+v, %v; want the role, which no node leads", results, err)
	}
}

// A release of a role that may have been acquired is not acknowledged and completes after
// the node has tried the role again. The node does not lead what another node can acquire.
func TestBackendLateReleaseEndsNoTerm(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	k := kinds[0]
	db := k.connect(t, k.source(t))
	backend := newBackend(t, db, k.dialect, lease.Config{})
	node := opensWith(t, backend, "late", tenure.Timing{Lease: time.Minute, RefreshInterval: 3 * time.Second})
	other := opens(t, backend, "other")
	request := []tenure.AcquireRequest{{Role: tenure.NamedRole(backendRole)}}

	begins := holdCommits(t, db, "begins", "NEW.holder IS NOT NULL")
	releases := holdCommits(t, db, "releases", "NEW.holder IS NULL")
	if results, err := node.TryAcquire(request); err == nil {
		t.Fatalf("the commit was acknowledged: %+v", results)
	}
	begins()
	testkit.Await(t, "the term begins", func() bool {
		return value(t, db, "SELECT count(*) FROM tenure_lease_seats WHERE holder IS NOT NULL AND ended_at IS NULL") == "1"
	})
	if _, err := node.Heartbeat(tenure.Load{}); err != nil { // releases the role
		t.Fatal(err)
	}

	var results []tenure.AcquireResult
	var err error
	again := make(chan struct{})
	go func() {
		defer close(again)
		results, err = node.TryAcquire(request)
	}()
	testkit.Await(t, "the node has tried the role, or waits for the release", func() bool {
		return wakeup.Closed(again) || waitsForTransaction(t, db)
	})
	releases()
	<-again
	if err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the release completes", func() bool {
		return value(t, db, "SELECT count(*) FROM tenure_lease_history WHERE end_reason = 'resigned'") == "1" ||
			value(t, db, "SELECT count(*) FROM tenure_lease_seats WHERE end_reason = 'resigned'") == "1"
	})
	second, err := other.TryAcquire(request)
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Outcome == tenure.OutcomeGranted && second[0].Outcome == tenure.OutcomeGranted {
		t.Errorf("two nodes lead, with the terms %d and %d", results[0].Term, second[0].Term)
	}
}
