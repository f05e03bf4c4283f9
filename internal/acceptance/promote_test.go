package acceptance_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// promotion is a replica that is promoted while the old primary lives: one node
// leads on the old primary, another one knows the new primary only.
type promotion struct {
	primary, replica *pgtest.Server
	c                *cluster
	old              *member
	term             *tenure.Term
	at               time.Time // not after the promotion began
}

// promote makes the old leader and promotes the replica, which has everything.
func promote(t *testing.T, synchronous bool, failoverWait time.Duration) *promotion {
	t.Helper()
	p := &promotion{primary: pgtest.Start(t, pgtest.Options{})}
	p.replica = p.primary.Replica(t, pgtest.ReplicaOptions{Synchronous: synchronous})
	p.c = clusterOn(t, p.primary.DSN(), "public")
	p.c.config.FailoverWait = failoverWait
	p.old = p.c.joinWired("old", address(p.primary))
	p.term = p.old.leads()
	execute(t, p.primary.Conn(t), "CREATE TABLE ledger (term bigint)")
	reader := p.replica.Conn(t)
	eventually(t, reader, "SELECT to_regclass('ledger') IS NOT NULL")
	eventually(t, reader, "SELECT term = $2 AND ended_at IS NULL FROM "+p.c.quoted("terms")+" WHERE role = $1", role, p.term.Number())
	p.at = time.Now()
	p.replica.Promote(t)
	return p
}

// joinNew opens a node that reaches the new primary only.
func (p *promotion) joinNew() *member {
	p.c.dsn = p.replica.DSN()
	return p.c.join("new")
}

// write makes a fenced write of a term on a server.
func (p *promotion) write(t *testing.T, server *pgtest.Server, term *tenure.Term) error {
	t.Helper()
	return postgres.InTx(t.Context(), server.Conn(t), term, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO ledger VALUES ($1)", term.Number())
		return err
	})
}

// No one stops the old primary, and replication is asynchronous: two nodes lead,
// from the end of the wait until the old primary stops, however long the wait is.
func TestUnfencedOldPrimaryPermitsTwoLeaders(t *testing.T) {
	pgtest.Long(t)
	for name, failoverWait := range map[string]time.Duration{"default wait": 0, "with FailoverWait": 2 * lease} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promoteBesideTheOldPrimary(t, failoverWait)
		})
	}
}

func promoteBesideTheOldPrimary(t *testing.T, failoverWait time.Duration) {
	t.Helper()
	p := promote(t, false, failoverWait)
	candidate := p.c.join("candidate") // its session is on the old primary
	const backend = "SELECT pid FROM "
	session := value[int](t, p.primary.Conn(t), backend+p.c.quoted("nodes")+" WHERE id = $1", candidate.ID())
	// The old leader is still the only one: a pool may be on either server.
	if err := errors.Join(p.write(t, p.primary, p.term), p.write(t, p.replica, p.term)); err != nil {
		t.Error(err)
	}
	measured := p.c.checks.tolerate()
	since := time.Now()
	next := p.joinNew()
	wait := max(lease, failoverWait)
	term, _ := next.leadsWithin(wait, since)
	if waited := term.AcquiredAt().Sub(p.at); waited < wait {
		t.Errorf("the next term began %v after the promotion; want at least the wait of %v", waited, wait)
	}
	if term.Number() <= p.term.Number() {
		t.Errorf("Invariant 2: term %d came after term %d", term.Number(), p.term.Number())
	}

	// Each server knows its own terms only.
	if !p.term.Valid() {
		t.Error("the old leader's term has ended although its server takes writes")
	}
	if err := errors.Join(p.write(t, p.primary, p.term), p.write(t, p.replica, term)); err != nil {
		t.Errorf("a write of a term on its primary: %v", err)
	}
	if err := p.write(t, p.replica, p.term); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a write of the old term on the new primary: %v; want ErrFenced", err)
	}
	if err := p.write(t, p.primary, term); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a write of the new term on the old primary: %v; want ErrFenced", err)
	}
	if now := value[int](t, p.primary.Conn(t), backend+p.c.quoted("nodes")+" WHERE id = $1", candidate.ID()); now != session || !candidate.Connected() {
		t.Errorf("the candidate on the old primary has session %d, want %d, the one it had", now, session)
	}

	p.primary.Stop(t, "immediate")
	ended(t, p.term)
	if measured() == 0 {
		t.Error("the test wants two nodes to lead")
	}
}

// FailoverWait covers the time until the old primary is fenced, and one lease more
// for a leader that does not hear of that.
func TestFailoverWaitCoversFencingOfOldPrimary(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const fencedWithin = 4 * time.Second
	p := promote(t, false, fencedWithin+lease)
	next := p.joinNew()
	fence := time.NewTimer(time.Until(p.at.Add(fencedWithin * 3 / 4)))
	defer fence.Stop()
	<-fence.C
	if !p.old.election.IsLeader() {
		t.Error("the old leader's term has ended before its server was fenced")
	}
	p.old.wire.Stall()
	p.primary.Stop(t, "immediate")
	if took := time.Since(p.at); took > fencedWithin {
		t.Fatalf("the old primary was fenced after %v: the test itself must do it within %v", took, fencedWithin)
	}
	term, _ := next.leadsWithin(fencedWithin+lease, p.at) // the checker looks for an overlap
	if waited := term.AcquiredAt().Sub(p.at); waited < fencedWithin+lease {
		t.Errorf("the next term began %v after the promotion; want at least %v", waited, fencedWithin+lease)
	}
	ended(t, p.term)
}

// With a synchronous standby the old primary acknowledges nothing after the standby
// has been promoted: the old leader's trust ends without a fence.
func TestPromotedSynchronousStandbyEndsTrust(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	p := promote(t, true, 0)
	since := time.Now()
	next := p.joinNew()
	next.leadsWithin(lease, since) // the checker looks for an overlap
	ended(t, p.term)
	if err := p.write(t, p.replica, p.term); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a write of the old term on the new primary: %v; want ErrFenced", err)
	}
}

// An old primary that no operator stops, and whose synchronous standby was promoted, looks
// like a primary and commits nothing. A node that names it first leaves it.
func TestNodeLeavesOrphanedPrimary(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{Synchronous: true})
	hosts := fmt.Sprintf("host=%s,%s port=%d,%d user=postgres dbname=postgres sslmode=disable target_session_attrs=read-write",
		primary.Host, replica.Host, primary.Port, replica.Port)
	c := clusterOn(t, hosts, "public")
	one, two := c.join("one"), c.join("two")
	_, term := c.someoneElse(0, one, two)

	since := time.Now()
	replica.Promote(t)
	_, next := c.someoneElse(term.Number(), one, two)
	if took := next.AcquiredAt().Sub(since); took > 2*lease+recovery+slack {
		t.Errorf("the next term began %v after the promotion; want at most a lease until the old leader gives up, and a lease of waiting", took)
	}
	ended(t, term)
	if value[bool](t, primary.Conn(t), "SELECT pg_is_in_recovery()") {
		t.Error("the old primary was stopped")
	}
	for _, m := range []*member{one, two} {
		m.awaitConnected()
	}
}
