package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// slowTiming is timing with a check interval that is not shorter than the refresh
// interval.
func slowTiming(o *peerOptions) {
	o.timing = timing()
	o.timing.CheckInterval = o.timing.RefreshInterval
}

// lookElsewhere makes a candidate read who leads a role, as it does when there was no
// change for a time. Late notifications of the sessions that have joined may come in between.
func (p *peer) lookElsewhere(roles ...string) {
	p.t.Helper()
	for {
		p.try(roles...)
		p.clock.advance(quietTime)
		p.beat()
		if p.try(roles...); p.elsewhere.since+quietTime <= p.elsewhere.beatAt {
			return
		}
	}
}

// needsNoStatement fails the test unless an attempt finds a role held without asking.
func (p *peer) needsNoStatement(role string) {
	p.t.Helper()
	p.trusted.Store(false) // nothing may be sent
	p.refused(role)
	p.trusted.Store(true)
}

// deaf makes a session that receives no notifications.
func (p *peer) deaf() *peer {
	p.t.Helper()
	if _, err := p.conn.Exec(context.Background(), "UNLISTEN *"); err != nil {
		p.t.Fatal(err)
	}
	return p
}

func TestAttemptsForLedRolesSendNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b, slowTiming), open(t, b, slowTiming)
	leader.take("a")
	leader.take("b")
	candidate.lookElsewhere("a", "b")
	candidate.needsNoStatement("a")
	candidate.needsNoStatement("b")

	leader.release("a", "resigned")
	if !candidate.wait(patience) {
		t.Fatal("no notification of the release")
	}
	candidate.take("a")
	candidate.refused("b")
	if n := len(candidate.elsewhere.leaders); n != 0 {
		t.Errorf("%d roles count as led right after a change; want none", n)
	}
}

// tries reports for how many roles an attempt sends a statement.
func (p *peer) tries(roles ...string) (sent int) {
	p.t.Helper()
	p.trusted.Store(false) // nothing may be sent
	defer p.trusted.Store(true)
	for _, role := range roles {
		if _, err := p.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole(role)}}); err != nil {
			sent++
		}
	}
	return sent
}

// Each role has another leader, 1,000 of which are followed. They are rows and node locks
// here, not processes: a server for a thousand sessions takes a minute to fill.
func TestAttemptsForRolesOfManyLeadersSendNothing(t *testing.T) {
	t.Parallel()
	const followed, first = 1000, 1_000_000
	const leaders = followed + 1
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	leader, candidate := open(t, b, slowTiming, lasting), open(t, b, slowTiming, lasting)
	roles := make([]string, leaders)
	for i := range roles {
		roles[i] = fmt.Sprintf("role-%d", i)
	}
	leader.try(roles...)
	locks := server.Conn(t)
	if _, err := locks.Exec(t.Context(), "SELECT pg_advisory_lock($1::int, $2::int + n) FROM generate_series(1, $3) n", candidate.space, first, leaders); err != nil {
		t.Fatal(err)
	}
	// Set by hand: 1,001 living leaders would need 2,002 connections.
	exec(t, b, `INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, pid, backend_start)
		SELECT gen_random_uuid(), $1::int + n, 'leader ' || n, 'localhost', 3600000, 0, clock_timestamp() FROM generate_series(1, $2::int) n`, first, leaders)
	withoutTriggers(t, b)
	// Set by hand: the same.
	exec(t, b, `UPDATE {terms} t SET node_id = n.id, incarnation = n.incarnation
		FROM (SELECT role, row_number() OVER () AS n FROM {terms}) r, {nodes} n WHERE t.role = r.role AND n.incarnation = $1::int + r.n`, first)
	candidate.lookElsewhere(roles...)
	if sent := candidate.tries(roles...); sent != leaders-followed {
		t.Errorf("Invariant 8: attempts for %d of %d roles sent a statement; want %d: 1,000 leaders are followed", sent, leaders, leaders-followed)
	}
}

func TestHeartbeatNoticesReleaseWithoutNotification(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b, slowTiming), open(t, b, slowTiming).deaf()
	leader.take("x")
	candidate.lookElsewhere("x")
	candidate.needsNoStatement("x")
	candidate.listener.Take()
	leader.release("x", "resigned")
	candidate.beat()
	if !candidate.listener.Take() {
		t.Fatal("the heartbeat reported no change")
	}
	candidate.take("x")
}

// Each step of a release fails until the last one.
func TestReleaseInStepsIsNoticedWithoutNotification(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b, slowTiming), open(t, b, slowTiming).deaf()
	leader.take("x")
	candidate.lookElsewhere("x")
	candidate.listener.Take()
	all, err := leader.resignation([]tenure.ReleaseRequest{{Role: tenure.NamedRole("x"), Term: leader.heldRoles["x"].term, Reason: "resigned"}})
	if err == nil {
		err = leader.releaseInSteps(all)
	}
	if err != nil {
		t.Fatal(err)
	}
	candidate.beat()
	if !candidate.listener.Take() {
		t.Fatal("the heartbeat reported no change")
	}
	candidate.take("x")
}

func TestHeartbeatNoticesEndOfALeader(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b, slowTiming), open(t, b, slowTiming)
	leader.take("x")
	candidate.lookElsewhere("x")
	candidate.beat()
	candidate.listener.Take()
	candidate.beat()
	if candidate.listener.Take() {
		t.Fatal("a heartbeat reported a change while the leader lived")
	}
	led := candidate.elsewhere
	leader.Abort()
	if !candidate.wait(patience) {
		t.Fatal("the watch did not notice the end")
	}
	eventually(t, b, `SELECT {ended}($1::int, ARRAY[$2::int]) AND n.status = 'dead' FROM {nodes} n WHERE incarnation = $2`, candidate.space, leader.incarnation)
	candidate.wait(100 * time.Millisecond) // for the notification of that
	candidate.elsewhere = led              // as if all that had been lost
	candidate.elsewhere.releases = row[int64](t, b, "SELECT last_value FROM {releases}")
	candidate.listener.Take()
	candidate.beat()
	if !candidate.listener.Take() {
		t.Fatal("the heartbeat reported no change")
	}
	candidate.win("x")
}

// A leader could not record that it has released a role, whose row therefore still names
// it. The node that has acquired the lock dies before its term begins, and the
// notification of that is lost.
func TestHeartbeatNoticesDeathBeforeTheTerm(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pending, leader := open(t, b, slowTiming), open(t, b, slowTiming) // whose watch sees the death
	candidate := open(t, b, slowTiming).deaf()
	leader.take("x")
	locked := pgtest.Conn(t, b.connect.Config.ConnString())
	if _, err := locked.Exec(t.Context(), b.names.SQL("BEGIN; SELECT FROM {terms} WHERE role = 'x' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	leader.release("x", "resigned")
	if attempt := pending.try("x")[0]; attempt.Outcome != tenure.OutcomePending {
		t.Fatalf("outcome %d, error %v; want the term pending", attempt.Outcome, attempt.Err)
	}
	candidate.lookElsewhere("x")
	candidate.needsNoStatement("x")
	candidate.beat()
	candidate.listener.Take()
	pending.Abort()
	leader.beat()
	for died := time.Now(); !candidate.listener.Take(); candidate.beat() {
		if time.Since(died) > timing().Lease/2 { // the leader named in the row lives for longer
			t.Fatal("no heartbeat reported a change after the death")
		}
	}
	if _, err := locked.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	candidate.win("x")
}

func TestRoleHeldByNoLeaderIsTriedEachTime(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	candidate := open(t, b, slowTiming)
	candidate.take("x")
	key := candidate.heldRoles["x"].key.String()
	candidate.release("x", "resigned")
	foreign := pgtest.Conn(t, b.connect.Config.ConnString())
	if _, err := foreign.Exec(t.Context(), "SELECT pg_advisory_lock($1::text::bigint)", key); err != nil {
		t.Fatal(err)
	}
	candidate.lookElsewhere("x")
	candidate.refused("x")
	if _, err := foreign.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	candidate.take("x")
}

// leftByEndedSession makes the row of a role as a session leaves it that has ended a moment
// ago.
func leftByEndedSession(t *testing.T, b *Backend, role string) {
	t.Helper()
	withoutTriggers(t, b)
	exec(t, b, `WITH ended AS (
		INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, pid, backend_start, status)
		VALUES (gen_random_uuid(), 1000000, 'ended', 'localhost', 3600000, 0, clock_timestamp(), 'dead')
		RETURNING id, incarnation
	)
	UPDATE {terms} t SET node_id = e.id, incarnation = e.incarnation FROM ended e WHERE t.role = $1`, role)
}

// A session that has ended without a change of the row leads nothing.
func TestRoleOfAnEndedSessionIsTriedEachTime(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b, slowTiming), open(t, b, slowTiming)
	leader.take("x")
	candidate.refused("x")
	leftByEndedSession(t, b, "x")
	candidate.lookElsewhere("x")
	if n := len(candidate.elsewhere.leaders); n != 0 {
		t.Errorf("%d roles count as led; want none", n)
	}
}

func TestAttemptsAreMadeWhereHeartbeatsAreRarer(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b), open(t, b) // the check interval is shorter
	leader.take("x")
	candidate.lookElsewhere("x")
	if n := len(candidate.elsewhere.leaders); n != 0 {
		t.Errorf("%d roles count as led; want none", n)
	}
}

func TestLedRolesAreTriedOnceInAWhile(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b, slowTiming), open(t, b, slowTiming)
	leader.take("x")
	leader.take("y")
	candidate.lookElsewhere("x", "y")
	candidate.needsNoStatement("x")
	candidate.needsNoStatement("y")
	interval := candidate.opening.Timing.CheckInterval
	candidate.clock.advance(59 * interval)
	candidate.beat()
	if sent := candidate.tries("x", "y"); sent != 0 {
		t.Errorf("Invariant 8: after 59 check intervals, attempts for %d of 2 roles sent a statement; want none before 60", sent)
	}
	candidate.clock.advance(interval)
	candidate.beat()
	for _, role := range []string{"x", "y"} { // in two calls, as an engine tries more than 1,000 roles
		candidate.trusted.Store(false)
		if _, err := candidate.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole(role)}}); err == nil {
			t.Errorf("Invariant 7: after 60 check intervals, no statement was sent for the role %s", role)
		}
		candidate.trusted.Store(true)
		candidate.refused(role)
		candidate.needsNoStatement(role)
	}
}

// Without room in the lock table nothing is known, so that the node tries.
func TestEndOfSessionsIsUnknownWithFullLockTable(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_locks_per_transaction": "10", "max_connections": "20"}})
	b := backendOn(t, server.DSN(), Config{})
	leader, asking, bystander := open(t, b), pgtest.Conn(t, server.DSN()), pgtest.Conn(t, server.DSN())
	ended := func() (yes bool) {
		t.Helper()
		if err := asking.QueryRow(t.Context(), b.names.SQL(`SELECT {ended}($1::int, ARRAY[$2::int])`), leader.space, leader.incarnation).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if ended() {
		t.Fatal("the session has ended")
	}
	for n := 1; ; n++ {
		if _, err := bystander.Exec(t.Context(), "SELECT pg_advisory_lock($1::int)", n); err != nil {
			t.Logf("the table is full after %d locks: %v", n-1, err)
			break
		}
	}
	if !ended() {
		t.Error("the session has not ended; want that it may have")
	}
}

// asking makes an attempt that asks who leads: one with no change before it.
func (p *peer) asking(roles ...string) []tenure.AcquireResult {
	p.t.Helper()
	for {
		if attempts := p.try(roles...); p.elsewhere.asks {
			return attempts
		}
	}
}

// A candidate tries a role again soon unless a living session leads it. That is not so if
// the lock belongs to a session that has ended its term, or whose row is another's.
func TestRoleIsLedByLivingSessionOnly(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b), open(t, b)
	leader.take("x")
	leader.take("y")
	for i, attempt := range candidate.asking("x", "y") {
		if attempt.Outcome != tenure.OutcomeHeld || !attempt.Led {
			t.Errorf("a living session leads role %d: %+v, want Led", i, attempt)
		}
	}
	withoutTriggers(t, b)
	exec(t, b, `UPDATE {terms} SET ended_at = clock_timestamp(), end_reason = 'resigned' WHERE role = 'x'`)
	leftByEndedSession(t, b, "y")
	for i, attempt := range candidate.asking("x", "y") {
		if attempt.Outcome != tenure.OutcomeHeld || attempt.Led {
			t.Errorf("the term of role %d has ended: %+v, want only Held", i, attempt)
		}
	}
}

// The first attempt after a change, and those of the node that has noticed a death, do not
// look who leads: they should be fast.
func TestFirstAttemptDoesNotAskWhoLeads(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader, candidate := open(t, b), open(t, b)
	leader.take("x")
	now := time.Now()
	candidate.deaths.Add(1000000, &now)
	if attempt := candidate.asking("x")[0]; attempt.Led {
		t.Errorf("%+v, want only Held", attempt)
	}
	candidate.deaths.Recorded(1000000)
	if attempt := candidate.asking("x")[0]; !attempt.Led {
		t.Errorf("%+v, want Led", attempt)
	}
	candidate.listener.Announce()
	if attempt := candidate.refused("x"); attempt.Led {
		t.Errorf("right after a change: %+v, want only Held", attempt)
	}
}

// Nodes are notified that a session was terminated before it has ended. If no watch waits
// for its end, nothing notifies them of that, so they try its roles again soon.
func TestRoleOfTerminatedSessionIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*peerOptions, *peer){
		"of a silent node":                   func(*peerOptions, *peer) {},
		"of a node that has another session": func(o *peerOptions, terminated *peer) { o.id = terminated.id },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			terminated := open(t, b, lasting)
			terminated.take("x")
			terminated.watch.leave()
			resume := pgtest.PauseBackend(t, b.connect.Config.ConnString(), int32(terminated.listener.pid), "ClientRead")
			terminated.silence(time.Hour)
			candidate := open(t, b, lasting, func(o *peerOptions) { next(o, terminated) })
			candidate.watch.leave()
			candidate.watch.down.Store(true)
			if attempt := candidate.asking("x")[0]; attempt.Outcome != tenure.OutcomeHeld || attempt.Led {
				t.Errorf("%+v, want only Held", attempt)
			}
			resume()
			candidate.win("x")
		})
	}
}
