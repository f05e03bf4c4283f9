package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A crash may undo the commit that began a term. The next term waits for the leader
// that the server has forgotten, has a greater number, and the history has both, with the name of
// the node that led behind an agent.
func TestNextTermWaitsForLeaderOfLostBegin(t *testing.T) {
	t.Parallel()
	const long = time.Hour // what the test cannot wait for
	for name, isNew := range map[string]bool{"the row has an earlier term": false, "the row has no term": true} {
		t.Run(name, func(t *testing.T) {
			if isNew {
				pgtest.Long(t)
			}
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{})
			b := backendOn(t, server.DSN(), Config{})
			crash := server.HoldLog(t)
			earlier := open(t, b)
			var last int64
			if isNew {
				if _, err := earlier.learnKeys([]lockRequest{{role: tenure.NamedRole("scheduler"), key: tenure.NamedRole("scheduler").LockKey(earlier.installation)}}); err != nil {
					t.Fatal(err)
				}
			} else {
				last = earlier.take("scheduler").Term
				earlier.release("scheduler", history.EndResigned)
			}
			leader := open(t, b, func(o *peerOptions) { o.timing.Lease = long })
			leader.beat() // all before the term is flushed
			results, err := leader.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole("scheduler"), NodeName: "n1"}})
			if err != nil || results[0].Outcome != tenure.OutcomeGranted {
				t.Fatalf("%+v, %v; want a term", results, err)
			}
			lost := results[0]
			if !lost.NotDurable {
				t.Error("the term counts as durable")
			}
			leader.trusted.Store(false)
			crash()
			if term := row[int64](t, b, "SELECT term FROM {terms} WHERE role = 'scheduler'"); term != last {
				t.Fatalf("after the crash the row has the term %d; the test needs it to have %d, since %d was lost", term, last, lost.Term)
			}
			earlier.openAgain()
			next := open(t, b)
			if attempt := next.firstAttempt("scheduler"); attempt.Outcome != tenure.OutcomePending {
				t.Errorf("%+v; want it to wait for the leader that the server has forgotten", attempt)
			}
			if left := next.waitLeft("scheduler"); left < long/2 {
				t.Errorf("it waits for %v; the forgotten leader's lease is %v", left, long)
			}
			leader.openAgain()
			if isNew { // nothing says that no other node is missing
				// Set by hand: the wait takes an hour, and its length is tested above.
				next.heldRoles["scheduler"].wait.until = testClock.Now().Mono
			}
			if won := next.win("scheduler"); won.Term <= lost.Term {
				t.Errorf("Invariant 2: the term %d began after %d", won.Term, lost.Term)
			}
			recorded := row[int](t, b, "SELECT count(*)::int FROM {history} WHERE role = 'scheduler' AND term = $1 AND node_id = $2 AND node_name = 'n1' AND acquired_at = $3 AND end_reason = 'server_changed'",
				lost.Term, leader.id, lost.AcquiredAt)
			if recorded != 1 {
				t.Errorf("the history has the lost term %d times, want once", recorded)
			}
		})
	}
}

// The row shows the end of the term before a lost one. However that ended, the next term
// settles: the lost one ended with the crash.
func TestTermSettlesAfterLostBegin(t *testing.T) {
	t.Parallel()
	const settle = time.Hour
	for name, isNew := range map[string]bool{"the term before ended cleanly": false, "the lost term was the first": true} {
		t.Run(name, func(t *testing.T) {
			if isNew {
				pgtest.Long(t)
			}
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{})
			b := backendOn(t, server.DSN(), Config{})
			crash := server.HoldLog(t)
			leader := open(t, b)
			if !isNew {
				leader.take("scheduler")
				leader.release("scheduler", history.EndResigned)
			}
			leader.beat() // what is before the lost term is flushed
			lost := leader.take("scheduler")
			leader.trusted.Store(false)
			crash()
			if row[bool](t, b, "SELECT EXISTS (SELECT FROM {terms} WHERE term = $1)", lost.Term) {
				t.Fatalf("the crash has not undone the term %d", lost.Term)
			}
			leader.openAgain()
			next := open(t, b, func(o *peerOptions) { o.timing.Settle = settle })
			if attempt := next.firstAttempt("scheduler"); attempt.Outcome != tenure.OutcomePending || next.waitLeft("scheduler") < settle/2 {
				t.Errorf("%+v; want it to settle for %v", attempt, settle)
			}
		})
	}
}

// After an acknowledged heartbeat the term survives a crash, and is not recorded
// twice.
func TestHeartbeatMakesTermDurable(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	crash := server.HoldLog(t)
	leader := open(t, b)
	kept := leader.take("scheduler")
	leader.beat()
	crash()
	if term := row[int64](t, b, "SELECT term FROM {terms} WHERE role = 'scheduler'"); term != kept.Term {
		t.Errorf("after the crash the row has the term %d; it was %d", term, kept.Term)
	}
	again := leader.openAgain()
	if n := row[int](t, b, "SELECT count(*)::int FROM {history} WHERE role = 'scheduler'"); n != 0 {
		t.Errorf("the history has %d terms although the first is still the last one", n)
	}
	again.win("scheduler")
	if n := row[int](t, b, "SELECT count(*)::int FROM {history} WHERE role = 'scheduler' AND term = $1", kept.Term); n != 1 {
		t.Errorf("the history has the first term %d times, want once", n)
	}
}
