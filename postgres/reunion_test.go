package postgres

import (
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

// endLife makes all that was recorded belong to an earlier life of the server,
// which began again a moment ago.
func endLife(t *testing.T, b *Backend) {
	t.Helper()
	exec(t, b, "UPDATE {terms} SET server_epoch = 'of an earlier life'")
	exec(t, b, "UPDATE {nodes} SET server_epoch = 'of an earlier life'")
}

// openAgain opens the next session of a peer's process.
func (p *peer) openAgain(changes ...func(*peerOptions)) *peer {
	p.t.Helper()
	return open(p.t, p.backend, append(changes, func(o *peerOptions) { o.id, o.previous = p.id, p.Incarnation() })...)
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

// justRestarted makes a session believe that the server came back a moment ago.
func (p *peer) justRestarted() { p.server.upAt = testClock.Now().Mono }

// After the server has lost its locks, the next term waits for every node that may
// trust an earlier session, and no longer.
func TestReunionAwaitsNodesThatMayTrust(t *testing.T) {
	const long = time.Hour // what the test cannot wait for
	waiting := func(o *peerOptions) { o.timing.FailoverWait = long }
	for name, c := range map[string]struct {
		change func(t *testing.T, b *Backend, leader, standby *peer)
		ends   bool
	}{
		"all are back": {
			func(_ *testing.T, _ *Backend, leader, standby *peer) { leader.openAgain(); standby.openAgain() }, true,
		},
		"all are back after openings that failed": {
			func(_ *testing.T, _ *Backend, leader, standby *peer) {
				own := func(o *peerOptions) { o.previous = leader.Incarnation() }
				leader.failToOpen(own)
				leader.failToOpen(own)
				leader.openAgain()
				standby.openAgain()
			}, true,
		},
		"an opening of another process with the leader's id failed": {
			func(_ *testing.T, _ *Backend, leader, standby *peer) {
				leader.failToOpen()
				leader.openAgain()
				standby.openAgain()
			}, false,
		},
		"one has left": {
			func(t *testing.T, _ *Backend, leader, standby *peer) {
				leader.openAgain()
				if err := standby.Close(); err != nil {
					t.Fatal(err)
				}
			}, true,
		},
		"the lease of the missing one has expired": {
			func(t *testing.T, b *Backend, leader, standby *peer) {
				leader.openAgain()
				exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '2 min' WHERE id = $1", standby.id)
			}, true,
		},
		"the leader is missing": {
			func(_ *testing.T, _ *Backend, _, standby *peer) { standby.openAgain() }, false,
		},
		"a standby is missing": {
			func(_ *testing.T, _ *Backend, leader, _ *peer) { leader.openAgain() }, false,
		},
		"the leader was found dead": {
			func(t *testing.T, b *Backend, leader, standby *peer) {
				standby.openAgain()
				exec(t, b, "UPDATE {nodes} SET status = 'dead', died_at = clock_timestamp() WHERE id = $1", leader.id)
			}, false,
		},
		"another process has the leader's id": {
			func(t *testing.T, b *Backend, leader, standby *peer) {
				standby.openAgain()
				open(t, b, func(o *peerOptions) { o.id = leader.id })
			}, false,
		},
		"the next session of a process that took the leader's id": {
			func(t *testing.T, b *Backend, leader, standby *peer) {
				standby.openAgain()
				open(t, b, func(o *peerOptions) { o.id = leader.id }).openAgain()
			}, false,
		},
		"the leader's row was deleted": {
			func(t *testing.T, b *Backend, leader, standby *peer) {
				standby.openAgain()
				exec(t, b, "DELETE FROM {nodes} WHERE id = $1", leader.id)
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			leader, standby := open(t, b, lasting), open(t, b, lasting)
			leader.take("scheduler")
			leader.Abort()
			endLife(t, b)
			c.change(t, b, leader, standby)
			next := open(t, b, waiting)
			next.justRestarted()
			want := tenure.OutcomePending
			if c.ends {
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
	b := newBackend(t)
	leader, standby := open(t, b), open(t, b)
	leader.take("scheduler")
	leader.Abort()
	standby.Abort()
	endLife(t, b)
	next := standby.openAgain(func(o *peerOptions) { o.timing.FailoverWait = time.Hour })
	next.justRestarted()
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
// promoted.
func TestReunionAfterPromotionNeedsSynchronousFailover(t *testing.T) {
	for name, c := range map[string]struct {
		synchronous bool
		timeline    string
		missing     bool
		want        tenure.Outcome
	}{
		"asynchronous":                 {false, "00000000", false, tenure.OutcomePending},
		"synchronous":                  {true, "00000000", false, tenure.OutcomeGranted},
		"synchronous, one is missing":  {true, "00000000", true, tenure.OutcomePending},
		"from a later timeline":        {true, "ffffffff", false, tenure.OutcomePending},
		"from a timeline of no number": {true, "what", false, tenure.OutcomePending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			leader := open(t, b)
			leader.take("scheduler")
			leader.Abort()
			endLife(t, b)
			for _, table := range []string{"terms", "nodes"} {
				exec(t, b, "UPDATE {"+table+"} SET server_lineage = split_part(server_lineage, '/', 1) || '/' || $1", c.timeline)
			}
			if !c.missing {
				leader.openAgain()
			}
			next := open(t, b, func(o *peerOptions) {
				o.timing.SynchronousFailover, o.timing.FailoverWait = c.synchronous, time.Hour
			})
			next.justRestarted()
			if attempt := next.firstAttempt("scheduler"); attempt.Outcome != c.want {
				t.Errorf("%+v; want outcome %d", attempt, c.want)
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
	first := open(t, b)
	first.take("scheduler")
	eventually(t, backendOn(t, replica.DSN(), Config{}), "SELECT to_regclass('public.tenure_terms') IS NOT NULL")
	first.Abort()
	primary.Stop(t, "fast")
	replica.Promote(t)
	second := first.openAgain()
	second.Abort()
	replica.Stop(t, "fast")
	primary.Start(t)
	exec(t, backendOn(t, primary.DSN(), Config{}), "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '2 min'")
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
	b := newBackend(t)
	const settle = time.Hour
	unclean := open(t, b)
	unclean.take("crashed")
	unclean.take("resigned")
	unclean.release("resigned", history.EndResigned)
	unclean.Abort()
	endLife(t, b)
	exec(t, b, "UPDATE {terms} SET server_epoch = '0/' || (SELECT id FROM {server}) WHERE role = 'resigned'") // as before a clean restart
	unclean.openAgain()
	next := open(t, b, func(o *peerOptions) { o.timing.Settle, o.timing.FailoverWait = settle, 2*settle })
	next.justRestarted()
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
