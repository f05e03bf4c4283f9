package acceptance_test

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Statements of another program on the leader's own session, as a pooler or a
// library with a borrowed connection would run them.
func TestInterferenceWithSessionIsDetected(t *testing.T) {
	t.Parallel()
	const (
		refresh = lease / 3
		audit   = 8 // heartbeats between two counts of the session's locks

		// All but the node's own lock, which others watch.
		unlockRoles = `
			SELECT pg_advisory_unlock((classid::bigint << 32) | objid::bigint)
			FROM pg_locks
			WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid = 1`
	)
	for name, test := range map[string]struct {
		statement string
		notice    time.Duration // within which the leader must have noticed
		frees     bool          // the statement frees the lock immediately
		long      bool          // a short run does without it
	}{
		"DISCARD ALL":       {"DISCARD ALL", refresh, true, false},
		"RESET ALL":         {"RESET ALL", refresh, false, false},
		"DEALLOCATE ALL":    {"DEALLOCATE ALL", refresh, false, true},
		"one setting reset": {"RESET tenure.incarnation", refresh, false, true},
		"all locks freed":   {"SELECT pg_advisory_unlock_all()", audit * refresh, true, false},
		"one lock freed":    {unlockRoles, audit * refresh, true, true},
		"one lock more":     {"SELECT pg_advisory_lock(8, 15)", audit * refresh, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.long {
				pgtest.Long(t)
			}
			t.Parallel()
			c := newCluster(t)
			leader := c.joinWired("leader", address(pgtest.Shared(t)))
			term := leader.leads()
			other := c.join("other")
			first := leader.session()
			measured := func() time.Duration { return 0 }
			if test.frees {
				// What happens until the leader has noticed is not promised.
				measured = c.checks.tolerate()
			}
			since := time.Now()
			if err := first.Inject(t.Context(), test.statement); err != nil {
				t.Fatal(err)
			}
			cause := causeOfEnd(t, term)
			took := time.Since(since)
			overlap := measured() // from here on no overlap is tolerated
			if !errors.Is(cause, tenure.ErrSessionLost) {
				t.Errorf("the term ended because of %v; want the session lost", cause)
			}
			if took > test.notice+slack {
				t.Errorf("the leader noticed after %v; the bound is %v", took, test.notice)
			}
			t.Logf("noticed after %v (bound %v); two nodes trusted their terms for %v", took.Round(time.Millisecond), test.notice, overlap)

			c.someoneElse(term.Number(), leader, other)
			// It campaigns again, on a new session.
			select {
			case <-first.Done():
			case <-time.After(patience):
				t.Fatal("the leader kept its session")
			}
			giveBack(t, other, leader)
		})
	}
}
