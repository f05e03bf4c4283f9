package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The wait on another server is the longest of the lease, FailoverWait and,
// after an unclean end, Settle.
// Set by hand: the server has to be a copy, whose life began at an unknown time.
// TestTermNumbersIncreaseAfterFailoverToLaggingReplica promotes a replica.
func TestServerChangeAwaitsTheLongestTime(t *testing.T) {
	t.Parallel()
	const longer, longest = 20 * time.Minute, 40 * time.Minute
	lease := timing().Lease
	for name, c := range map[string]struct {
		failoverWait, settle time.Duration
		clean                bool
		want                 time.Duration
	}{
		"FailoverWait":                       {longer, 0, true, longer},
		"FailoverWait below the lease":       {lease / 2, 0, true, lease},
		"Settle":                             {longer, longest, false, longest},
		"Settle below FailoverWait":          {longest, longer, false, longest},
		"Settle does not count, clean ended": {longer, longest, true, longer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			first := open(t, b)
			first.take("scheduler")
			if c.clean {
				first.release("scheduler", history.EndResigned)
			}
			exec(t, b, "UPDATE {terms} SET server_lineage = 'of another timeline'")
			second := open(t, b, func(o *peerOptions) { o.timing.FailoverWait, o.timing.Settle = c.failoverWait, c.settle })
			first.Abort()
			eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, first.listener.pid)
			attempt := second.try("scheduler")[0]
			from := second.heldRoles["scheduler"].lockedAt // this server may be a copy
			second.wantWaitUntil("scheduler", attempt, from+c.want, from+c.want)
		})
	}
}

// If a candidate freezes while it settles, the next one settles for the full
// time.
func TestSettleCountsPerCandidate(t *testing.T) {
	t.Parallel()
	const settle = time.Hour
	b := newBackend(t)
	careful := func(o *peerOptions) { o.timing.Settle = settle }
	first, frozen, next := open(t, b), open(t, b, careful), open(t, b, careful)
	first.take("scheduler")
	first.Abort()
	if attempt := frozen.firstAttempt("scheduler"); attempt.Outcome != tenure.OutcomePending {
		t.Fatalf("%+v; want it to settle", attempt)
	}
	aborted := testClock.Now().Mono
	frozen.Abort()
	attempt := next.firstAttempt("scheduler")
	next.wantWaitUntil("scheduler", attempt, aborted+settle, testClock.Now().Mono+settle)
}

// A transaction that locks the whole table of terms belongs to an operator, and
// no node terminates it.
func TestLockedTableIsLeftToOperator(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b, impatient)
	first.take("scheduler")
	holder := pgtest.Conn(t, b.connect.Config.ConnString())
	if _, err := holder.Exec(t.Context(), b.names.SQL("BEGIN; LOCK TABLE {terms} IN EXCLUSIVE MODE")); err != nil {
		t.Fatal(err)
	}
	first.Abort()
	eventually(t, b, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, first.listener.pid)
	for start := time.Now(); time.Since(start) < 20*second.opening.Timing.FenceTimeout; {
		attempt := second.try("scheduler")[0]
		if attempt.Outcome == tenure.OutcomeGranted {
			t.Fatal("a term began while the table was locked")
		}
		second.wait(max(attempt.RetryIn, time.Millisecond))
	}
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatalf("the operator's transaction was ended: %v", err)
	}
	for {
		attempt := second.try("scheduler")[0]
		if attempt.Outcome == tenure.OutcomeGranted {
			return
		}
		second.wait(max(attempt.RetryIn, time.Millisecond))
	}
}

// Roles for which the lock table had no room are granted when there is room
// again.
func TestRolesAreGrantedWhenLockTableHasRoomAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"max_locks_per_transaction": "10", "max_connections": "20",
	}})
	p := open(t, backendOn(t, server.DSN(), Config{}))
	roles := numbered(150)
	var granted, full []string
	for i, attempt := range p.try(roles...) {
		switch {
		case attempt.Outcome == tenure.OutcomeGranted:
			granted = append(granted, roles[i])
		case errors.Is(attempt.Err, ErrLockTableFull):
			full = append(full, roles[i])
		}
	}
	if len(granted) == 0 || len(full) == 0 {
		t.Fatalf("%d roles were granted, %d found no room", len(granted), len(full))
	}
	for _, role := range granted {
		p.release(role, history.EndResigned)
	}
	for _, role := range full {
		p.take(role)
	}
}
