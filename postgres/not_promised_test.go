package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The tests of this file show what the page of guarantees says is not promised.

// TestCopyOfDatabaseElectsOnItsOwn: a database that was copied from a template has the
// roles and keys of the original, and separate locks. Both have a leader.
func TestCopyOfDatabaseElectsOnItsOwn(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	original := backendOn(t, server.DSN(), Config{})
	exec(t, original, `CREATE DATABASE original`)
	original = backendOn(t, server.DSNFor("postgres", "original"), Config{})
	former := open(t, original)
	former.take("scheduler")
	former.release("scheduler", history.EndResigned)
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	original.Close()

	admin := server.Conn(t)
	if _, err := admin.Exec(t.Context(), `
		SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE datname = 'original'`); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), `CREATE DATABASE copied TEMPLATE original`); err != nil {
		t.Fatal(err)
	}
	first := open(t, backendOn(t, server.DSNFor("postgres", "original"), Config{}))
	second := open(t, backendOn(t, server.DSNFor("postgres", "copied"), Config{}))
	if id := `SELECT id::text FROM {installation}`; row[string](t, first.backend, id) != row[string](t, second.backend, id) {
		t.Fatal("the copy is another installation")
	}
	one, two := first.take("scheduler"), second.take("scheduler")
	if one.Previous == 0 || one.Previous != two.Previous {
		t.Errorf("the last terms are %d and %d; want the same one", one.Previous, two.Previous)
	}
	first.beat()
	second.beat()
}

// TestClockStepOfServerMisjudgesSilence: a step of the server's clock changes how old
// a heartbeat seems. After a step forward by more than a lease, the session of a living
// leader is ended; after a step back, that of a silent one is spared.
// Set by hand: the clock of a server is that of its machine, and heartbeats that are older
// by the same time look alike to the statement.
func TestClockStepOfServerMisjudgesSilence(t *testing.T) {
	t.Parallel()
	const alive = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"
	reap := func(p *peer) {
		t.Helper()
		if err := p.query(stmtReap, nil, p.id, p.opening.Timing.Margin.Milliseconds(), p.space, noPairs); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("forward", func(t *testing.T) {
		t.Parallel()
		b := newBackend(t)
		living, rival := open(t, b), open(t, b)
		living.take("scheduler")
		living.beat()
		reap(rival)
		if !row[bool](t, b, alive, living.listener.pid) {
			t.Fatal("the session was ended although the clock had not been stepped")
		}
		exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '12 s' WHERE id = $1", living.id) // lease + margin is 11 s
		reap(rival)
		eventually(t, b, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", living.listener.pid)
	})
	t.Run("back", func(t *testing.T) {
		t.Parallel()
		b := newBackend(t)
		silent, rival := open(t, b, brief), open(t, b)
		rival.watch.leave() // only this test ends sessions
		silent.take("scheduler")
		silent.stick()
		over := (stuckLease + rival.opening.Timing.Margin + time.Second).Seconds()
		// It has been silent for longer than lease + margin, and the clock was stepped back.
		exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - $2::float8 * interval '1 s' + interval '1 h' WHERE id = $1", silent.id, over)
		reap(rival)
		if !row[bool](t, b, alive, silent.listener.pid) {
			t.Error("the session was ended, although the clock was stepped back by an hour")
		}
		exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '1 h' WHERE id = $1", silent.id)
		reap(rival)
		eventually(t, b, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", silent.listener.pid)
	})
}

// TestSettleDoesNotWaitAfterDroppedSchema: the tables made anew have no record of the last
// term, so the next one does not wait although its predecessor ended uncleanly.
func TestSettleDoesNotWaitAfterDroppedSchema(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	settling := func(o *peerOptions) { o.timing.Settle = time.Hour }
	first := open(t, b)
	first.take("scheduler")
	exec(t, b, dropSchema)
	exec(t, b, `SELECT pg_terminate_backend($1, 20000)`, first.listener.pid)
	if err := b.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	second := open(t, b, settling)
	second.win("scheduler")

	// With the tables in place, it waits.
	second.Abort()
	third := open(t, b, settling)
	attempt := third.try("scheduler")[0]
	for ; attempt.Outcome == tenure.OutcomeHeld; attempt = third.try("scheduler")[0] {
		third.wait(10 * time.Millisecond)
	}
	if attempt.Outcome != tenure.OutcomePending || attempt.Fenced {
		t.Errorf("after an unclean end with the tables in place: %+v; want it pending", attempt)
	}
}
