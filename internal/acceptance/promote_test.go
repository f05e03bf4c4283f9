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

// write makes a fenced write of the old term on a server.
func (p *promotion) write(t *testing.T, server *pgtest.Server) error {
	t.Helper()
	return postgres.InTx(t.Context(), server.Conn(t), p.term, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO ledger VALUES ($1)", p.term.Number())
		return err
	})
}

// Nobody stops the old primary, and replication is asynchronous: two nodes lead,
// for as long as the old primary takes writes.
func TestPromotionWhileTheOldPrimaryLives(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	p := promote(t, false, 0)
	// The old leader is still the only one: a pool may be on either server.
	if err := errors.Join(p.write(t, p.primary), p.write(t, p.replica)); err != nil {
		t.Error(err)
	}
	measured := p.c.checks.tolerate()
	since := time.Now()
	next := p.joinNew()
	term, _ := next.leadsWithin(lease, since)
	if waited := term.AcquiredAt().Sub(p.at); waited < lease {
		t.Errorf("the next term began %v after the promotion; want at least the lease of %v", waited, lease)
	}
	if term.Number() <= p.term.Number() {
		t.Errorf("Invariant 2: term %d came after term %d", term.Number(), p.term.Number())
	}

	// Each server knows its own terms only.
	if !p.term.Valid() {
		t.Error("the old leader's term has ended although its server takes writes")
	}
	if err := p.write(t, p.primary); err != nil {
		t.Errorf("a write of the old term on the old primary: %v", err)
	}
	if err := p.write(t, p.replica); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a write of the old term on the new primary: %v; want ErrFenced", err)
	}
	if measured() == 0 {
		t.Error("the test wants two nodes to lead")
	}

	measured = p.c.checks.tolerate() // until the old leader hears of it
	p.primary.Stop(t, "immediate")
	ended(t, p.term)
	measured()
}

// FailoverWait covers the time until the old primary is fenced, and one lease more
// for a leader that does not hear of that.
func TestPromotionWithFailoverWait(t *testing.T) {
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
func TestPromotionOfASynchronousStandby(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	p := promote(t, true, 0)
	since := time.Now()
	next := p.joinNew()
	next.leadsWithin(lease, since) // the checker looks for an overlap
	ended(t, p.term)
	if err := p.write(t, p.replica); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a write of the old term on the new primary: %v; want ErrFenced", err)
	}
}

// An old primary that nobody stops, and whose synchronous standby was promoted, looks
// like a primary and commits nothing. A node that names it first leaves it.
func TestOrphanedPrimaryIsLeft(t *testing.T) {
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
