package postgres

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// waitLeft is how long the term of a role whose lock is held must still wait, at
// most.
func (p *peer) waitLeft(role string) time.Duration {
	return p.heldRoles[role].wait.until - testClock.Now().Mono
}

// shortWait is the rest of a wait that a test waits for.
const shortWait = 300 * time.Millisecond

// wantWaitUntil requires of the first attempt that found a role's lock free that the
// term may begin at an instant between two others. A slow machine may reach the instant
// during the attempt.
func (p *peer) wantWaitUntil(role string, attempt tenure.AcquireResult, earliest, latest time.Duration) {
	p.t.Helper()
	until, now := p.heldRoles[role].wait.until, testClock.Now().Mono
	if until < earliest || until > latest {
		p.t.Fatalf("%+v: the term may begin %v from now; want it between %v and %v from now", attempt, until-now, earliest-now, latest-now)
	}
	if attempt.Outcome == tenure.OutcomeGranted && now >= until {
		return
	}
	if attempt.Outcome != tenure.OutcomePending || attempt.RetryIn <= 0 || attempt.RetryIn > latest-p.heldRoles[role].lockedAt {
		p.t.Fatalf("%+v; want it to wait for %v", attempt, until-now)
	}
}

// winAfterWait acquires a role and requires that its term does not begin before the
// wait is over.
func (p *peer) winAfterWait(role string) tenure.AcquireResult {
	p.t.Helper()
	attempt, until := p.win(role), p.heldRoles[role].wait.until
	if now := testClock.Now().Mono; now < until {
		p.t.Errorf("the term began %v before the end of the wait", until-now)
	}
	return attempt
}

// openAgain opens the next session of a peer's process.
func (p *peer) openAgain(changes ...func(*peerOptions)) *peer {
	p.t.Helper()
	return p.openAgainOn(p.backend, changes...)
}

// openAgainOn opens the node's next session on another server.
func (p *peer) openAgainOn(b *Backend, changes ...func(*peerOptions)) *peer {
	return open(p.t, b, append(changes, func(o *peerOptions) { o.id, o.previous = p.id, p.Incarnation() })...)
}

// failToOpen lets an opening with a peer's id fail after it has written the node's row.
func (p *peer) failToOpen(changes ...func(*peerOptions)) {
	p.t.Helper()
	next := row[int64](p.t, p.backend, "SELECT nextval({membership:regclass})")
	exec(p.t, p.backend, "SELECT setval({membership:regclass}, 9223372036854775807)")
	_, err := tryOpen(p.t, p.backend, append(changes, func(o *peerOptions) { o.id = p.id })...)
	exec(p.t, p.backend, "SELECT setval({membership:regclass}, $1)", next)
	if err == nil || !strings.Contains(err.Error(), "announce the node") {
		p.t.Fatalf("the opening did not fail at its end: %v", err)
	}
	if written := row[int64](p.t, p.backend, "SELECT incarnation FROM {nodes} WHERE id = $1", p.id); written == p.Incarnation() {
		p.t.Fatal("the opening did not write the node's row")
	}
}

// crashAfter restarts a server as after a crash that lost nothing.
func crashAfter(t *testing.T, server *pgtest.Server, b *Backend) {
	t.Helper()
	exec(t, b, "CHECKPOINT") // the begin of a term is not durable
	server.Restart(t, "immediate")
}

// After the server has lost its locks, the next term waits for every node that may
// trust an earlier session, and no longer.
func TestReunionAwaitsNodesThatMayTrust(t *testing.T) {
	const long = time.Hour // what the test cannot wait for
	waiting := func(o *peerOptions) { o.timing.FailoverWait = long }
	type outage struct {
		name   string
		change func(t *testing.T, b *Backend, leader, standby *peer)
		ends   bool
		lease  time.Duration // of the standby, if it is not a long one

		backend         *Backend
		leader, standby *peer
	}
	all := []*outage{
		{name: "all are back", ends: true, change: func(_ *testing.T, _ *Backend, leader, standby *peer) {
			leader.openAgain()
			standby.openAgain()
		}},
		{name: "all are back after openings that failed", ends: true, change: func(_ *testing.T, _ *Backend, leader, standby *peer) {
			own := func(o *peerOptions) { o.previous = leader.Incarnation() }
			leader.failToOpen(own)
			leader.failToOpen(own)
			leader.openAgain()
			standby.openAgain()
		}},
		{name: "an opening of another process with the leader's id failed", change: func(_ *testing.T, _ *Backend, leader, standby *peer) {
			leader.failToOpen()
			leader.openAgain()
			standby.openAgain()
		}},
		{name: "one has left", ends: true, change: func(t *testing.T, _ *Backend, leader, standby *peer) {
			leader.openAgain()
			if err := standby.openAgain().Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "the lease of the missing one has expired", ends: true, lease: 2 * time.Second, change: func(t *testing.T, b *Backend, leader, standby *peer) {
			leader.openAgain()
			eventually(t, b, "SELECT last_heartbeat + lease_ms * interval '1 ms' < clock_timestamp() FROM {nodes} WHERE id = $1", standby.id)
		}},
		{name: "the leader is missing", change: func(_ *testing.T, _ *Backend, _, standby *peer) { standby.openAgain() }},
		{name: "a standby is missing", change: func(_ *testing.T, _ *Backend, leader, _ *peer) { leader.openAgain() }},
		{name: "the leader was found dead", change: func(t *testing.T, b *Backend, leader, standby *peer) {
			standby.openAgain()
			eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", leader.id)
		}},
		{name: "another process has the leader's id", change: func(t *testing.T, b *Backend, leader, standby *peer) {
			standby.openAgain()
			open(t, b, func(o *peerOptions) { o.id = leader.id })
		}},
		{name: "the next session of a process that took the leader's id", change: func(t *testing.T, b *Backend, leader, standby *peer) {
			standby.openAgain()
			open(t, b, func(o *peerOptions) { o.id = leader.id }).openAgain()
		}},
		{name: "two processes with shorter leases took the leader's id in turn", change: func(t *testing.T, b *Backend, leader, standby *peer) {
			standby.openAgain()
			brief := func(o *peerOptions) { o.id, o.timing.Lease = leader.id, 2*time.Second }
			open(t, b, brief)
			open(t, b, brief)
			eventually(t, b, "SELECT last_heartbeat + lease_ms * interval '1 ms' < clock_timestamp() FROM {nodes} WHERE id = $1", leader.id)
		}},
		{name: "the leader's row was deleted", change: func(t *testing.T, b *Backend, leader, standby *peer) {
			standby.openAgain()
			exec(t, b, "DELETE FROM {nodes} WHERE id = $1", leader.id) // Set by hand: an operator deletes it.
		}},
	}
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, o := range all {
		o.backend = backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
		o.leader, o.standby = open(t, o.backend, lasting), open(t, o.backend, lasting, func(options *peerOptions) {
			options.timing.Lease = cmp.Or(o.lease, options.timing.Lease)
		})
		o.leader.take("scheduler")
	}
	crashAfter(t, server, all[0].backend)
	for _, o := range all {
		t.Run(o.name, func(t *testing.T) {
			o.leader.t, o.standby.t = t, t
			o.change(t, o.backend, o.leader, o.standby)
			next := open(t, o.backend, waiting)
			want := tenure.OutcomePending
			if o.ends {
				want = tenure.OutcomeGranted
			}
			if attempt := next.firstAttempt("scheduler"); attempt.Outcome != want {
				t.Errorf("%+v; want outcome %d", attempt, want)
			}
		})
	}
}

// firstAttempt is the first one that finds the role's lock free.
func (p *peer) firstAttempt(role string) tenure.AcquireResult {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); p.wait(10 * time.Millisecond) {
		if attempt := p.try(role)[0]; attempt.Outcome != tenure.OutcomeHeld {
			return attempt
		}
	}
	p.t.Fatalf("%s was still held after %v", role, patience)
	panic("unreachable")
}

// A waiting session is notified also of a join that causes no other notification.
func TestReunionIsNoticed(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	leader, standby := open(t, b, lasting), open(t, b)
	leader.take("scheduler")
	crashAfter(t, server, b)
	next := standby.openAgain(func(o *peerOptions) { o.timing.FailoverWait = time.Hour })
	if attempt := next.firstAttempt("scheduler"); attempt.Outcome != tenure.OutcomePending {
		t.Fatalf("%+v; want it to wait", attempt)
	}
	next.drain()
	back := leader.openAgain()
	if !next.wait(patience) {
		t.Fatal("no notification reported the join")
	}
	next.win("scheduler")
	back.refused("scheduler")
}

// After a promotion rows may be missing, unless only synchronous standbys are
// promoted. Then the clock of the promoted one may be behind by up to a margin.
func TestReunionAfterPromotionNeedsSynchronousFailover(t *testing.T) {
	t.Parallel()
	type promotion struct {
		name        string
		synchronous bool
		timeline    string // of the term, if no server reports it
		missing     bool
		ends        bool // a margin after all are back

		primary *Backend
		schema  string
		leader  *peer
	}
	all := []*promotion{
		{name: "asynchronous"},
		{name: "synchronous", synchronous: true, ends: true},
		{name: "synchronous, one is missing", synchronous: true, missing: true},
		{name: "from a later timeline", synchronous: true, timeline: "ffffffff"},
		{name: "from a timeline of no number", synchronous: true, timeline: "what"},
	}
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	for _, p := range all {
		p.schema = primary.Schema(t)
		p.primary = backendOn(t, primary.DSN(), Config{Schema: p.schema})
		p.leader = open(t, p.primary, lasting)
		p.leader.take("scheduler")
		if p.timeline != "" { // Set by hand: no server reports such a timeline.
			exec(t, p.primary, "UPDATE {terms} SET server_lineage = split_part(server_lineage, '/', 1) || '/' || $1", p.timeline)
		}
	}
	end := row[string](t, all[0].primary, "SELECT pg_current_wal_insert_lsn()::text")
	eventually(t, backendOn(t, replica.DSN(), Config{}), "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", end)
	primary.Stop(t, "immediate")
	replica.Promote(t)
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			b := backendOn(t, replica.DSN(), Config{Schema: p.schema})
			p.leader.t = t
			if !p.missing {
				p.leader.openAgainOn(b)
			}
			back := time.Now()
			next := open(t, b, func(o *peerOptions) {
				o.timing.SynchronousFailover, o.timing.FailoverWait = p.synchronous, time.Hour
			})
			if attempt := next.firstAttempt("scheduler"); attempt.Outcome != tenure.OutcomePending {
				t.Errorf("%+v; want it to wait", attempt)
			}
			if left := next.waitLeft("scheduler"); p.ends != (left < patience) {
				t.Errorf("it waits for %v; want the wait to end after the margin: %v", left, p.ends)
			}
			if !p.ends {
				return
			}
			next.win("scheduler")
			if took := time.Since(back); took < timing().Margin {
				t.Errorf("the term began %v after all nodes were back; want at least %v", took, timing().Margin)
			}
		})
	}
}

// An old primary that is started again, with its earlier data, knows neither the nodes nor
// the roles of the newer one. A node that comes from there waits as on any other server.
func TestTermWaitsOnReturnedPrimary(t *testing.T) {
	const long = time.Hour // what the test cannot wait for
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	b := backendOn(t, fmt.Sprintf("host=%s,%s port=%d,%d user=postgres dbname=postgres sslmode=disable",
		primary.Host, replica.Host, primary.Port, replica.Port), Config{})
	first := open(t, b, func(o *peerOptions) { o.timing.Lease = 3 * time.Second })
	first.take("scheduler")
	eventually(t, backendOn(t, replica.DSN(), Config{}), "SELECT to_regclass('public.tenure_terms') IS NOT NULL")
	first.Abort()
	primary.Stop(t, "fast")
	replica.Promote(t)
	second := first.openAgain()
	second.Abort()
	replica.Stop(t, "fast")
	primary.Start(t)
	eventually(t, backendOn(t, primary.DSN(), Config{}), "SELECT last_heartbeat + lease_ms * interval '1 ms' < clock_timestamp() FROM {nodes}")
	third := second.openAgain(func(o *peerOptions) { o.timing.FailoverWait = long })
	for role, last := range map[string]string{"scheduler": "that was led here", "new": "that may have been led on the newer one"} {
		if attempt := third.firstAttempt(role); attempt.Outcome != tenure.OutcomePending || third.waitLeft(role) < long/2 {
			t.Errorf("a role %s: %+v; want it to wait for %v", last, attempt, long)
		}
	}
}

// Settle gives work that was canceled time to return: from when everybody is back. After a
// clean end it does not count if the server has lost no term since.
func TestSettleCountsFromTheReunion(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	const settle = time.Hour
	unclean := open(t, b, lasting)
	unclean.take("crashed")
	unclean.take("resigned")
	crashAfter(t, server, b)
	resigning := unclean.openAgain(lasting)
	resigning.win("resigned")
	resigning.release("resigned", history.EndResigned)
	server.Restart(t, "fast")
	resigning.openAgain(lasting)
	next := open(t, b, func(o *peerOptions) { o.timing.Settle, o.timing.FailoverWait = settle, 2*settle })
	if attempt := next.firstAttempt("resigned"); attempt.Outcome != tenure.OutcomeGranted {
		t.Errorf("after a clean end: %+v; want it granted", attempt)
	}
	attempt := next.firstAttempt("crashed")
	for deadline := time.Now().Add(patience); next.heldRoles["crashed"].wait.reunion && time.Now().Before(deadline); {
		next.wait(attempt.RetryIn) // it does not look again immediately
		attempt = next.try("crashed")[0]
	}
	if left := next.waitLeft("crashed"); attempt.Outcome != tenure.OutcomePending || left > settle || left < settle-patience {
		t.Errorf("after a crash: %+v, %v left; want it to wait for %v", attempt, left, settle)
	}
}

// The row of a node that may trust its last session stays.
func TestForgetWaitsForTheLease(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	const lease = 3 * time.Second // a busy machine must not miss it before the heartbeat
	short := func(o *peerOptions) {
		o.timing.Lease, o.timing.RefreshInterval, o.timing.Margin = lease, lease, lease/10
	}
	p := open(t, b, short)
	open(t, b)
	beat := time.Now() // before the heartbeat: no later than the server records it
	p.beat()
	p.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
	if gone, err := b.ForgetDead(t.Context(), 0); err != nil || len(gone) > 0 && time.Since(beat) < lease/2 {
		t.Errorf("%v after its last heartbeat: forgotten %v, %v; want none", time.Since(beat), gone, err)
	}
	if err := b.Forget(t.Context(), p.id); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(beat); took < lease {
		t.Errorf("forgotten %v after its last heartbeat; want its lease of %v to pass", took, lease)
	}
}
