package acceptance_test

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// TestRoleStaysLockedUntilWorkReturns: a leader that steps down keeps the lock on the
// server while its work runs, also after the context of the work has been canceled, and
// the next term begins after the work has returned.
func TestRoleStaysLockedUntilWorkReturns(t *testing.T) {
	for name, stopTimeout := range map[string]time.Duration{
		"work may end gracefully":         patience,
		"the context of work is canceled": lease / 10,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.config.StopTimeout = stopTimeout
			leader := c.join("leader")
			term := leader.leads()
			rival := c.join("rival")
			rival.awaitConnected()
			work, err := leader.election.Guard()
			if err != nil {
				t.Fatal(err)
			}
			steppedDown := make(chan error, 1)
			go func() { steppedDown <- leader.election.StepDown(t.Context()) }() // returns when the work has returned
			<-term.Stopping()
			graceful := stopTimeout == patience
			if !graceful {
				ended(t, term)
			}

			// Two heartbeats later, an early release would long have happened.
			conn := pgtest.Conn(t, c.dsn)
			beats := "SELECT last_heartbeat FROM " + c.quoted("nodes") + " WHERE id = $1"
			for range 2 {
				last := value[time.Time](t, conn, beats, leader.ID())
				eventually(t, conn, "SELECT ("+beats+") > $2", leader.ID(), last)
			}
			if work.Valid() != graceful {
				t.Errorf("the term of the work is valid: %t; want %t", work.Valid(), graceful)
			}
			if value[bool](t, conn, "SELECT pg_try_advisory_lock(lock_key::bigint) FROM "+c.quoted("terms")+" WHERE role = $1", role) {
				t.Error("Invariant 4: the lock of the role is free while work runs")
			}
			if rival.election.IsLeader() {
				t.Error("Invariant 4: the rival leads while work runs")
			}

			returned := time.Now()
			work.Done()
			if err := <-steppedDown; err != nil {
				t.Errorf("StepDown: %v", err)
			}
			if next := rival.leads(); next.AcquiredAt().Before(returned) {
				t.Errorf("Invariant 4: the next term began %v before the work returned", returned.Sub(next.AcquiredAt()))
			}
		})
	}
}

// TestRunningWorkDelaysTermAfterRestart: after a restart of the server, all nodes are
// back. If the work of the last leader has not returned, no term begins before the lease
// of its earlier session has expired; otherwise one begins soon.
func TestRunningWorkDelaysTermAfterRestart(t *testing.T) {
	pgtest.Long(t)
	for name, returns := range map[string]bool{"work has returned": true, "work runs": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := newServer(t, pgtest.Options{})
			c.config.Lease, c.config.FailoverWait = 2*lease, time.Hour // longer than it takes nodes to come back
			leader := c.join("leader")
			term := leader.leads()
			other := c.join("other")
			other.awaitConnected()
			work, err := leader.election.Guard()
			if err != nil {
				t.Fatal(err)
			}
			// The begin of the first term must not be lost with the crash.
			execute(t, server.Conn(t), "CHECKPOINT")
			trusted := time.Now().Add(term.Remaining()) // at least
			server.Restart(t, "immediate")
			ended(t, term)
			if returns {
				work.Done()
			} else {
				defer work.Done()
			}

			next, again := c.someoneElse(term.Number(), leader, other)
			began := again.AcquiredAt()
			started := value[time.Time](t, server.Conn(t), "SELECT pg_postmaster_start_time()")
			t.Logf("%s led %v after the server started", next.Name(), began.Sub(started))
			switch {
			case returns && !began.Before(trusted):
				t.Errorf("the term began %v after the end of trust in the earlier one, although all nodes were back", began.Sub(trusted))
			case !returns && began.Before(trusted):
				t.Errorf("Invariant 1: the term began %v before the end of trust in the earlier one, whose work runs", trusted.Sub(began))
			case !returns && began.Sub(started) > c.config.Lease+recovery+slack:
				t.Errorf("the term began %v after the server started; the bound is the lease of %v", began.Sub(started), c.config.Lease)
			case !returns && next == leader:
				t.Errorf("Invariant 4: %s leads again while its work of the last term runs", leader.Name())
			}
		})
	}
}
