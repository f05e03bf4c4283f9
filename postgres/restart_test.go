package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The wait after a restart or a promotion is the same for all candidates: if one freezes
// during the wait, the next one does not wait for the full time again. No term
// begins before a leader that the server acknowledged in its earlier life has
// stopped trusting its own.
func TestWaitAfterRestartCountsOnce(t *testing.T) {
	t.Parallel()
	const lease = 8 * time.Second
	of := func(o *peerOptions) { o.timing.Lease, o.timing.RefreshInterval = lease, lease/3 }
	restart := func(mode string) func(*testing.T, *pgtest.Server) func() *pgtest.Server {
		return func(t *testing.T, s *pgtest.Server) func() *pgtest.Server {
			return func() *pgtest.Server { s.Restart(t, mode); return s }
		}
	}
	for name, prepare := range map[string]func(*testing.T, *pgtest.Server) (lose func() *pgtest.Server){
		"fast":      restart("fast"),
		"immediate": restart("immediate"),
		"promotion": func(t *testing.T, s *pgtest.Server) func() *pgtest.Server {
			standby := s.Replica(t, pgtest.ReplicaOptions{Synchronous: true})
			return func() *pgtest.Server { s.Stop(t, "immediate"); standby.Promote(t); return standby }
		},
	} {
		for role, led := range map[string]bool{"a role that was led": true, "a role that is new": false} {
			t.Run(name+"/"+role, func(t *testing.T) {
				if name != "fast" {
					pgtest.Long(t)
				}
				t.Parallel()
				server := pgtest.Start(t, pgtest.Options{})
				b := backendOn(t, server.DSN(), Config{})
				lose := prepare(t, server)
				leader := open(t, b, of)
				if led {
					leader.take("scheduler")
				}
				// Set by hand: a server is hours old when it restarts. The row survives a clean restart.
				exec(t, b, "UPDATE {server} SET created_at = created_at - interval '1 hour'")
				leader.beat()
				trusted := time.Now().Add(lease - leader.opening.Timing.Margin)
				server = lose()
				restarted := time.Now()
				b = backendOn(t, server.DSN(), Config{})

				frozen := open(t, b, of)
				wait := frozen.try("scheduler")[0]
				if name == "fast" && !led { // nothing was lost
					if wait.Outcome != tenure.OutcomeGranted {
						t.Errorf("%+v; want it granted immediately", wait)
					}
					return
				}
				left := frozen.waitLeft("scheduler")
				if wait.Outcome != tenure.OutcomePending || left <= 0 || left > lease {
					t.Fatalf("%+v, %v left; want it to wait for at most the lease", wait, left)
				}
				time.Sleep(left / 2) // it freezes in the middle of its wait
				frozen.Abort()
				next := open(t, b, of)
				for next.busy("scheduler") {
					next.wait(10 * time.Millisecond)
				}
				next.win("scheduler")
				began := time.Now()
				if began.Before(trusted) {
					t.Errorf("a term began %v before the earlier leader stopped trusting its own", trusted.Sub(began))
				}
				if took := began.Sub(restarted); took > lease+lease*3/8 { // the wait of both would be half a lease more
					t.Errorf("a term began %v after the restart; want it after the lease of %v, for every candidate", took, lease)
				}
			})
		}
	}
}

// After a crash, a role without a row can have lost it, and with it the leader's lease:
// its first term waits for the longest of all durations.
func TestNewRoleAwaitsTheLongestTimeAfterCrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	const others = time.Hour // the lease of a node that may lead
	open(t, b, func(o *peerOptions) { o.timing.Lease = others })
	server.Restart(t, "immediate")
	for _, c := range []struct { // the longest lease in the registry grows
		role   string
		change func(*tenure.Timing)
		want   time.Duration
	}{
		{"lease of another node", func(*tenure.Timing) {}, others},
		{"FailoverWait", func(w *tenure.Timing) { w.FailoverWait = 2 * others }, 2 * others},
		{"Settle", func(w *tenure.Timing) { w.Settle = 3 * others }, 3 * others},
		{"own lease", func(w *tenure.Timing) { w.Lease = 4 * others }, 4 * others},
	} {
		next := open(t, b, func(o *peerOptions) { c.change(&o.timing) })
		got := next.try(c.role)[0]
		if got.Outcome != tenure.OutcomePending || got.RetryIn > c.want || got.RetryIn < c.want-time.Minute {
			t.Errorf("%s: %+v; want it to wait for %v", c.role, got, c.want)
		}
		next.Abort()
	}
}

// If an operator has deleted the row of the last leader's node, the leader's lease is
// known from the row of the role alone.
func TestLeaseOfDeletedLeaderIsAwaitedAfterCrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	const lease = time.Hour
	leader := open(t, b, func(o *peerOptions) { o.timing.Lease = lease })
	leader.take("scheduler")
	leader.beat()                     // makes the term durable
	exec(t, b, "DELETE FROM {nodes}") // Set by hand: as the operator does.
	server.Restart(t, "immediate")
	next := open(t, b)
	got := next.try("scheduler")[0]
	if got.Outcome != tenure.OutcomePending || got.RetryIn > lease || got.RetryIn < lease-time.Minute {
		t.Errorf("%+v; want it to wait for the leader's lease of %v", got, lease)
	}
}
