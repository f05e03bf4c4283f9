package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A replica is promoted, and its primary returns without a restart, with the
// rows that it had: its last term number is not that of the last leader.
func TestTermNumbersGrowOnOldPrimary(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	short := func(o *peerOptions) { o.timing.Lease = 4 * time.Second }
	lead := func(server *pgtest.Server) tenure.AcquireResult {
		t.Helper()
		p := open(t, backendOn(t, server.DSN(), Config{}), short)
		defer p.Abort()
		return p.win("scheduler")
	}
	first := lead(primary)
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	replica.Promote(t)
	second := lead(replica)
	back := lead(primary)
	if second.Term <= first.Term || back.Term <= second.Term {
		t.Errorf("term %d on the primary, %d on its replica, %d on the primary again: want them to grow", first.Term, second.Term, back.Term)
	}
	if back.Previous != first.Term {
		t.Errorf("the old primary remembers term %d, want %d", back.Previous, first.Term)
	}
}

func TestTermNumbersGrowInRecreatedSchema(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	lead := func() int64 {
		t.Helper()
		p := open(t, b)
		term := p.take("scheduler").Term
		p.release("scheduler", history.EndResigned)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		return term
	}
	first := lead()
	exec(t, b, dropSchema)
	if second := lead(); second <= first {
		t.Errorf("term %d in the new schema after %d in the old one", second, first)
	}
}

// The term number in the row increases although the server's clock has been set
// back.
// Set by hand: the clock of a server is that of its machine.
func TestTermNumbersGrowWhenClockStepsBack(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	p.release("scheduler", history.EndResigned)
	ahead := time.Now().Add(time.Hour).UnixMilli()
	exec(t, b, "UPDATE {terms} SET term = $1", ahead)
	for want := ahead + 1; want <= ahead+2; want++ {
		if next := p.take("scheduler"); next.Term != want || next.Previous != want-1 {
			t.Errorf("term %d after %d; want %d after %d", next.Term, next.Previous, want, want-1)
		}
		p.release("scheduler", history.EndResigned)
	}
}
