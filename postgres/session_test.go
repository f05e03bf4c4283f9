package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestOnlyOneOfManyNodesLeads(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)

	attempt := first.take("scheduler")
	if attempt.Term != attempt.AcquiredAt.UnixMilli() || attempt.Previous != 0 {
		t.Errorf("the first term has number %d after %d, want the time, %v, after none", attempt.Term, attempt.Previous, attempt.AcquiredAt)
	}
	if attempt.PrecedingVacancy >= 0 {
		t.Errorf("the role was vacant for %v before its first term, want it unknown", attempt.PrecedingVacancy)
	}
	second.refused("scheduler")

	leaders, err := b.Leaders(context.Background(), "scheduler")
	if err != nil || len(leaders) != 1 {
		t.Fatalf("leaders: %v, %v; want one", leaders, err)
	}
	if l := leaders[0]; l.NodeID != first.id || l.Term != attempt.Term || !l.Valid() {
		t.Errorf("leader: %+v, valid %v; want node %v in term %d", l, l.Valid(), first.id, attempt.Term)
	}
}

func TestResignationFreesTheRole(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	led := first.take("scheduler")
	second.refused("scheduler")
	first.awaitWatcher()
	second.drain()

	first.release("scheduler", history.EndResigned)
	if !second.wait(5 * time.Second) { // the session needs a heartbeat before its lease ends
		t.Fatal("the resignation was not announced")
	}
	attempt := second.take("scheduler")
	if attempt.Term <= led.Term || attempt.Previous != led.Term {
		t.Errorf("the second term has number %d after %d, want a larger one after %d", attempt.Term, attempt.Previous, led.Term)
	}
	if attempt.PrecedingVacancy < 0 || attempt.PrecedingVacancy > patience {
		t.Errorf("the role was vacant for %v, want a short time", attempt.PrecedingVacancy)
	}
	if reason := row[string](t, b, "SELECT end_reason FROM {history} WHERE role = 'scheduler' AND term = $1", led.Term); reason != "resigned" {
		t.Errorf("the first term ended with reason %q, want resigned", reason)
	}
	first.refused("scheduler")
}

// drain reads the pending notifications, for example about nodes that joined.
func (p *peer) drain() {
	p.t.Helper()
	for p.wait(50 * time.Millisecond) {
	}
}

// awaitWatcher waits until another node waits for the end of p's session.
func (p *peer) awaitWatcher() {
	p.t.Helper()
	eventually(p.t, p.backend, `SELECT EXISTS (
		SELECT FROM pg_locks WHERE objsubid = 2 AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND NOT granted
	)`, uint32(p.space), p.Incarnation())
}

// A session whose process dies is followed about as fast as the server passes a lock on.
func TestCrashIsNoticedInMilliseconds(t *testing.T) {
	server := pgtest.Shared(t)
	b := newBackend(t)
	leader, next, third := open(t, b, lasting), open(t, b, lasting), open(t, b, lasting)
	leader.take("scheduler")
	server.JudgeSpeed(t, "the takeover after a crash", pgtest.ByCrash, func() time.Duration {
		next.refused("scheduler")
		leader.awaitWatcher()
		next.drain()
		third.drain()
		led := leader.heldRoles["scheduler"].term
		start := time.Now()
		leader.network.Close()
		if !next.wait(patience) { // as an engine does: it tries when it is notified
			t.Fatal("no node was notified of the crash")
		}
		next.win("scheduler")
		took := time.Since(start)
		if !third.wait(patience) {
			t.Fatal("a node that does not try was not notified of the crash")
		}
		if reason := row[string](t, b, "SELECT end_reason FROM {history} WHERE role = 'scheduler' AND term = $1", led); reason != "crashed" {
			t.Errorf("the term ended with reason %q, want crashed", reason)
		}
		eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", leader.id)
		leader, next, third = next, third, open(t, b, lasting)
		return took
	})
}

// A role that is released is led by another session about as fast as the server passes a
// lock on.
func TestReleaseIsNoticedInMilliseconds(t *testing.T) {
	server := pgtest.Shared(t)
	b := newBackend(t)
	leader, next := open(t, b), open(t, b)
	leader.take("scheduler")
	server.JudgeSpeed(t, "the takeover after a release", pgtest.ByUnlock, func() time.Duration {
		next.refused("scheduler")
		next.drain()
		start := time.Now()
		leader.release("scheduler", history.EndResigned)
		if !next.wait(patience) {
			t.Fatal("the release was not announced")
		}
		next.win("scheduler")
		took := time.Since(start)
		leader, next = next, leader
		return took
	})
}

func TestCanceledWaitKeepsSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.drain()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 { // canceling it never closes the connection
		if changed, err := p.Wait(ctx); changed || err != nil {
			t.Fatalf("wait: %v, %v; want nothing", changed, err)
		}
		p.beat()
	}
}

func TestAbortInterruptsWait(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.drain()
	go p.Abort()
	_, err := p.Wait(context.Background())
	if !errors.Is(err, tenure.ErrSessionLost) || !errors.Is(err, tenure.ErrConnection) {
		t.Fatalf("wait: %v; want the session lost with its connection", err)
	}
}

func TestNothingIsSentWithoutTrust(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	p.trusted.Store(false)
	_, beat := p.Heartbeat(tenure.Load{})
	_, try := p.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole("other")}})
	release := p.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("scheduler"), Term: p.heldRoles["scheduler"].term}})
	for _, err := range []error{beat, try, release} {
		if !errors.Is(err, tenure.ErrSessionLost) || errors.Is(err, tenure.ErrConnection) {
			t.Errorf("%v; want the session lost, and not its connection", err)
		}
	}
	if changes := row[bool](t, b, "SELECT ended_at IS NULL FROM {terms} WHERE role = 'scheduler'"); !changes {
		t.Error("the term was closed")
	}
}

func TestCloseAnnouncesDeparture(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	first.awaitWatcher()
	second.drain()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if !second.wait(patience) {
		t.Error("the departure was not announced")
	}
	if row[bool](t, b, "SELECT EXISTS (SELECT FROM {nodes} WHERE id = $1)", first.id) {
		t.Error("the node's row is still there")
	}
	first.Abort()
}

// When a node has a new session and the server finally drops the old one, the
// other nodes are notified, although no node watches the old session in the
// ring.
func TestEndOfEarlierSessionIsNotified(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for _, others := range []int{0, 1} {
		earlier := open(t, b)
		earlier.take("scheduler")
		var other *peer
		if others > 0 {
			other = open(t, b)
		}
		later := open(t, b, func(o *peerOptions) { o.id = earlier.id })
		watching := later
		if others > 0 {
			watching = other
		}
		watching.refused("scheduler")
		watching.drain()
		if others > 0 { // until the other has found out that its place in the ring has changed
			eventually(t, b, `SELECT NOT EXISTS (
				SELECT FROM pg_locks WHERE objsubid = 2 AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND NOT granted
			)`, uint32(earlier.space), earlier.Incarnation())
		}
		earlier.network.Close()
		if !watching.wait(patience) {
			t.Errorf("with %d others: no node was notified", others)
		}
		watching.win("scheduler")
		watching.Close()
		later.Close()
	}
	eventually(t, b, "SELECT count(*) = 0 FROM {nodes}")
}
