package acceptance_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// recovery is how long after the server answers again a node leads, beside
// what the protocol waits for.
const recovery = 2500 * time.Millisecond

// newServer starts a server of the test and an installation on it.
func newServer(t *testing.T, options pgtest.Options) (*pgtest.Server, *cluster) {
	t.Helper()
	server := pgtest.Start(t, options)
	return server, clusterOn(t, server.DSN(), "public")
}

// crash kills one backend, so that the server ends all others, forgets all
// locks and starts anew, and returns when the server answered again.
func crash(t *testing.T, server *pgtest.Server) (answered time.Time) {
	t.Helper()
	conn := server.Conn(t)
	if err := sandbox.Signal(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for conn.Ping(t.Context()) == nil { // until the server has noticed
		<-tick.C
	}
	server.AwaitReady(t)
	return time.Now()
}

// reunited is how long after all nodes are back a node leads.
const reunited = 500 * time.Millisecond

// sinceAllAreBack is how long after the last node had opened its session the last
// term began.
func (c *cluster) sinceAllAreBack() time.Duration {
	c.t.Helper()
	ms := value[float64](c.t, pgtest.Conn(c.t, c.dsn), "SELECT 1000 * extract(epoch FROM acquired_at - (SELECT max(at) FROM "+c.quoted("node_history")+
		" WHERE incarnation IN (SELECT incarnation FROM "+c.quoted("nodes")+")))::double precision FROM "+c.quoted("terms")+" WHERE role = $1", role)
	return time.Duration(ms * float64(time.Millisecond))
}

// epoch is the server incarnation that the last term was granted in.
func (c *cluster) epoch() string {
	c.t.Helper()
	return value[string](c.t, pgtest.Conn(c.t, c.dsn), "SELECT server_lineage || ' ' || server_epoch FROM "+c.quoted("terms")+" WHERE role = $1", role)
}

func TestRoleIsLedAgainAfterServerCrash(t *testing.T) {
	t.Run("the leader takes the role again immediately", func(t *testing.T) {
		t.Parallel()
		server, c := newServer(t, pgtest.Options{})
		c.config.Lease = 5 * lease // that is not waited for
		leader := c.join("leader")
		first := leader.leads()
		before := c.epoch()
		// The begin of a role's first term must not be lost: without its row no node can
		// know that the leader is back, and the next term waits for the whole lease.
		execute(t, server.Conn(t), "CHECKPOINT")
		answered := crash(t, server)
		ended(t, first)
		term, _ := leader.leadsWithin(recovery, answered)
		if term.Number() <= first.Number() {
			t.Errorf("Invariant 2: term %d came after term %d", term.Number(), first.Number())
		}
		if after := c.epoch(); after == before {
			t.Errorf("the server incarnation is %s before and after", after)
		}
	})

	// Another node cannot know whether the leader has noticed.
	t.Run("another node waits until the leader's lease has expired", func(t *testing.T) {
		t.Parallel()
		server, c := newServer(t, pgtest.Options{})
		leader := c.joinWired("leader", address(server))
		first := leader.leads()
		other := c.join("other")
		leader.wire.Stall() // it hears nothing of all this
		answered := crash(t, server)
		term, _ := other.leadsWithin(lease+recovery, answered)
		if first.Valid() {
			t.Error("the other node's term began while the leader trusted its own")
		}
		if term.Number() <= first.Number() {
			t.Errorf("Invariant 2: term %d came after term %d", term.Number(), first.Number())
		}
		leader.wire.Resume()
		ended(t, first)
	})
}

func TestRoleIsLedAgainAfterServerRestart(t *testing.T) {
	for _, mode := range []string{"fast", "immediate"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server, c := newServer(t, pgtest.Options{})
			members := []*member{c.join("one"), c.join("two")}
			_, term := c.someoneElse(0, members...)
			for range 2 {
				server.Restart(t, mode)
				answered := time.Now()
				ended(t, term)
				next, again := c.someoneElse(term.Number(), members...)
				took, back := time.Since(answered), c.sinceAllAreBack()
				if took > recovery+slack {
					t.Errorf("the role was led after %v; the bound is %v", took, recovery)
				}
				if back > reunited+slack {
					t.Errorf("the role was led %v after both nodes were back; the bound is %v", back, reunited)
				}
				t.Logf("%s led after %v, %v after both nodes were back", next.Name(), took.Round(time.Millisecond), back)
				term = again
			}
		})
	}
}

// terminate ends a node's session.
const terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenure ' || $1 || ' session'"

// A session that an administrator terminates is followed by another immediately.
// The overlap is the time until the old leader learns of the end.
func TestTerminatedSessionIsReplaced(t *testing.T) {
	const rounds = 5
	t.Run("on loopback", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		admin := pgtest.Conn(t, c.dsn)
		members := []*member{c.join("terminated one"), c.join("terminated two")}
		leader, term := c.someoneElse(0, members...)
		measured := c.checks.tolerate()
		for range rounds {
			for _, m := range members {
				m.awaitConnected() // or the next term waits for a session to open
			}
			execute(t, admin, terminate, leader.Name())
			since := time.Now()
			leader, term = c.someoneElse(term.Number(), members...)
			if took := time.Since(since); took > slack {
				t.Errorf("the next term began after %v", took)
			}
		}
		// The server notifies the leader before it frees the lock, but a busy machine
		// may delay the leader.
		overlap := measured()
		t.Logf("two nodes trusted their terms for %v at most", overlap)
		if overlap > slack/2 { // without that notification it would be the rest of the trust window
			t.Errorf("Invariant 1: two nodes trusted their terms for %v", overlap)
		}
	})
	t.Run("behind a delay", func(t *testing.T) {
		t.Parallel()
		const delay = 50 * time.Millisecond
		c := newCluster(t)
		admin := pgtest.Conn(t, c.dsn)
		measured := c.checks.tolerate()
		far := c.joinWired("terminated far", address(pgtest.Shared(t)))
		near := c.join("terminated near")
		for range rounds {
			term := far.leads()
			far.wire.Delay(delay)
			execute(t, admin, terminate, far.Name())
			next := near.leads()
			ended(t, term)
			far.wire.Delay(0)
			if next.Number() <= term.Number() {
				t.Errorf("Invariant 2: term %d came after term %d", next.Number(), term.Number())
			}
			giveBack(t, near, far)
		}
		overlap := measured()
		t.Logf("with notifications delayed by %v, two nodes trusted their terms for %v at most", delay, overlap)
		if overlap > delay+slack/2 {
			t.Errorf("the overlap of %v is longer than the delay explains", overlap)
		}
	})
}

// giveBack hands the role over to another node and waits until it leads.
func giveBack(t *testing.T, from, to *member) *tenure.Term {
	t.Helper()
	to.awaitConnected() // who is not there yet cannot take what is kept for it for a moment
	from.leads()
	if err := from.election.HandOver(t.Context(), to.ID()); err != nil {
		t.Fatal(err)
	}
	return to.leads()
}

// awaitConnected waits until the node has a session.
func (m *member) awaitConnected() {
	m.t.Helper()
	limit, look := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for !m.Connected() {
		select {
		case <-look.C:
		case <-limit:
			m.t.Fatalf("%s does not come back", m.Name())
		}
	}
}

// A leader that is alone and cut off for a while records, when it is back, that no
// node led in between.
func TestReconnectedLeaderRecordsVacancy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	alone := c.joinWired(t.Name(), address(pgtest.Shared(t)))
	first := alone.leads()
	seen := c.observe()
	since := time.Now()
	alone.wire.Stall() // also what it opens next
	for _, connection := range alone.wire.Connections() {
		connection.Cut()
	}
	ended(t, first)
	<-time.After(3 * checkInterval)
	away := time.Since(since)
	alone.wire.Resume()
	next := alone.leads()
	if next.Number() <= first.Number() || next.PrecedingVacancy() < away-slack || next.PrecedingVacancy() > time.Since(since) {
		t.Errorf("term %d began after no node had led for %v; want one after term %d, after %v", next.Number(), next.PrecedingVacancy(), first.Number(), away)
	}
	c.agree(seen)
}
