package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

const stuckLease = 4 * time.Second

func brief(o *peerOptions) {
	o.timing.Lease, o.timing.RefreshInterval, o.timing.Margin = stuckLease, stuckLease, stuckLease/10
}

// stick puts a session into a state that the server does not count as idle, and
// returns when its last heartbeat was, on the clock of this process at the
// latest.
func (p *peer) stick() time.Time {
	p.t.Helper()
	return p.stickIn(&pgproto3.Query{String: p.backend.names.SQL("COPY {installation} FROM STDIN")})
}

// stickIn is stick with given messages after which the server waits for more.
func (p *peer) stickIn(messages ...pgproto3.FrontendMessage) time.Time {
	p.t.Helper()
	p.beat()
	last := time.Now()
	var sent []byte
	for _, message := range messages {
		var err error
		if sent, err = message.Encode(sent); err != nil {
			p.t.Fatal(err)
		}
	}
	if _, err := p.network.Write(sent); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, p.backend, "SELECT state = 'active' AND wait_event = 'ClientRead' FROM pg_stat_activity WHERE pid = $1", p.listener.pid)
	return last
}

// tryAsNode tries to acquire a role and reports whether it was free. After a
// notification it tries a few times, as a node does: a session that ends releases its
// locks one after the other.
func (p *peer) tryAsNode(role string, notified bool) bool {
	p.t.Helper()
	free := !p.busy(role)
	for pause := 2 * time.Millisecond; !free && notified && pause < 150*time.Millisecond; pause *= 3 {
		p.wait(pause)
		free = !p.busy(role)
	}
	return free
}

// markDeadSoon waits until a node's lease is over and marks it as dead.
func markDeadSoon(t *testing.T, b *Backend, id uuid.UUID) {
	t.Helper()
	eventually(t, b, "SELECT last_heartbeat < clock_timestamp() - lease_ms * interval '1 millisecond' FROM {nodes} WHERE id = $1", id)
	dead, err := b.MarkDead(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(dead) != 1 || dead[0] != id {
		t.Fatalf("marked as dead: %v, want %v", dead, id)
	}
}

// A stuck session is terminated because of the locks that it holds, whatever
// the registry contains about its node.
func TestStuckSessionOutsideTheRingIsTerminated(t *testing.T) {
	t.Parallel()
	const promised = stuckLease + stuckLease/10
	for name, c := range map[string]struct {
		leave func(t *testing.T, p *peer)
		bound time.Duration // from the last heartbeat, or from when the row was gone
		gone  bool          // the row is gone
		short bool          // a short run has it
	}{
		"its node is marked as dead": {
			func(t *testing.T, p *peer) { markDeadSoon(t, p.backend, p.id) },
			promised,
			false,
			true,
		},
		"its node is forgotten": {
			func(t *testing.T, p *peer) {
				markDeadSoon(t, p.backend, p.id)
				if err := p.backend.Forget(t.Context(), p.id); err != nil {
					t.Fatal(err)
				}
			},
			promised,
			false,
			false,
		},
		"its node's row is deleted": {
			// Set by hand: the row is one that an operator deletes.
			func(t *testing.T, p *peer) { exec(t, p.backend, "DELETE FROM {nodes} WHERE id = $1", p.id) },
			watchPeriodOfTest + max(promised, strangerGrace),
			true,
			true,
		},
		"its node came back twice": {
			func(t *testing.T, p *peer) {
				open(t, p.backend, brief, func(o *peerOptions) { o.id = p.id }).Abort()
				open(t, p.backend, brief, func(o *peerOptions) { o.id = p.id })
			},
			watchPeriodOfTest + max(promised, strangerGrace),
			true,
			false,
		},
		"its node was marked as dead and came back": {
			func(t *testing.T, p *peer) {
				markDeadSoon(t, p.backend, p.id)
				open(t, p.backend, brief, func(o *peerOptions) { o.id = p.id })
			},
			promised,
			false,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.short {
				pgtest.Long(t)
			}
			t.Parallel()
			server := pgtest.Shared(t)
			config := Config{Schema: server.Schema(t)}
			if c.gone { // otherwise no watch waits for the end of a call
				config.WatchPeriod = watchPeriodOfTest
			}
			b := backendOn(t, server.DSN(), config)
			stuck := open(t, b, brief)
			stuck.take("scheduler")
			rival := open(t, b, func(o *peerOptions) { o.timing.Margin = stuckLease / 10 })
			rival.refused("scheduler")
			open(t, b, lasting) // so that the rival is not alone
			last := stuck.stick()
			c.leave(t, stuck)
			if c.gone {
				last = time.Now()
			}
			for notified := false; !rival.tryAsNode("scheduler", notified); rival.beat() {
				if time.Since(last) > c.bound+patience {
					t.Fatal("the session was never ended")
				}
				notified = rival.wait(10 * time.Second / 3)
			}
			took := time.Since(last)
			t.Logf("led after %v", took.Round(time.Millisecond))
			if took > c.bound+stuckLease { // what a busy machine may add
				t.Errorf("the role was led after %v; the bound is %v", took, c.bound)
			}
		})
	}
}

const watchPeriodOfTest = 3 * time.Second

// A session without a row is spared for the longest lease that it may have, and for the
// time that a session that joins may take.
func TestSessionWithoutRowIsSparedForLongestLease(t *testing.T) {
	t.Parallel()
	watchOf := func(lease, margin time.Duration) *watch { // it does not run
		return &watch{session: &session{opening: tenure.SessionOptions{Timing: tenure.Timing{Lease: lease, Margin: margin}}}}
	}
	node, now := watchOf(10*time.Second, time.Second), time.Now()
	for lease, want := range map[time.Duration]time.Duration{
		0: strangerGrace, 5 * time.Second: strangerGrace, 20 * time.Second: 21 * time.Second, time.Hour: time.Hour + time.Second,
	} {
		if got := node.strangerDue(1000, lease, now).Sub(now); got != want {
			t.Errorf("with a lease of %v, it is spared for %v; want %v", lease, got, want)
		}
	}
	if got := watchOf(time.Minute, 6*time.Second).strangerDue(1000, time.Second, now).Sub(now); got != 66*time.Second {
		t.Errorf("a node with a lease of 1m spares it for %v; want 1m6s", got)
	}
}

// A node that is silent for most of its lease may still trust its terms: its
// session is not terminated until the lease and the margin are over (Invariant 1).
func TestReaperSparesTrustedSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	stuck, rival := open(t, b, brief), open(t, b, brief)
	stuck.take("scheduler")
	stuck.stick()
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	margin := rival.opening.Timing.Margin
	for start := time.Now(); ; {
		rival.beat()
		if err := rival.query(stmtReap, nil, rival.id, margin.Milliseconds(), rival.space, noPairs); err != nil {
			t.Fatal(err)
		}
		var (
			held   bool
			silent float64
		)
		err := conn.QueryRow(t.Context(), b.names.SQL(`
			SELECT
				EXISTS (SELECT FROM pg_stat_activity WHERE pid = $2),
				1000 * extract(epoch FROM clock_timestamp() - last_heartbeat)::double precision
			FROM {nodes}
			WHERE id = $1`), stuck.id, stuck.listener.pid).Scan(&held, &silent)
		if err != nil {
			t.Fatal(err)
		}
		if !held {
			if since := link.FromMilliseconds(silent); since < stuckLease+margin {
				t.Errorf("invariant 1: the session was ended %v after its last heartbeat, before the lease of %v and the margin of %v were over",
					since, stuckLease, margin)
			}
			return
		}
		if time.Since(start) > patience {
			t.Fatal("the session was never ended")
		}
	}
}

// A copy of a database has the rows of the original's nodes, and with them the
// process ids of sessions in the original.
func TestReaperSparesOtherDatabases(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	original, copied := backendOn(t, server.Database(t), Config{}), backendOn(t, server.Database(t), Config{})
	living, other := open(t, original), open(t, copied)
	other.watch.leave() // it would mark the node as dead
	exec(t, copied,     // Set by hand: a copy of a database has the rows of another server's sessions.
		`INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, pid, backend_start, last_heartbeat)
		SELECT gen_random_uuid(), 1000, 'copied', 'localhost', 1000, pid, backend_start, clock_timestamp() - interval '1 hour'
		FROM pg_stat_activity
		WHERE pid = $1`, living.listener.pid)
	if err := other.query(stmtReap, nil, other.id, 1000, other.space, noPairs); err != nil {
		t.Fatal(err)
	}
	if !row[bool](t, original, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", living.listener.pid) {
		t.Error("the session of a node of another database was ended")
	}
	living.beat()
}

// The server session of a forgotten node can end some time after the signal. The
// candidates are notified when it has ended.
func TestForgettingNotifiesAfterEndOfSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Shared(t)
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
	stuck := open(t, b, brief)
	stuck.take("scheduler")
	rival := open(t, b)
	rival.refused("scheduler")
	stuck.stick()
	resume := pgtest.PauseBackend(t, server.DSN(), int32(stuck.listener.pid), "ClientRead")
	markDeadSoon(t, b, stuck.id)
	forgotten := make(chan error, 1)
	go func() { forgotten <- b.Forget(context.Background(), stuck.id) }()
	eventually(t, b, `SELECT EXISTS ( -- Forget waits for the end of the session
		SELECT FROM pg_stat_activity JOIN pg_locks USING (pid)
		WHERE objsubid = 2 AND classid = $1::bigint::oid AND objid = $2::bigint::oid AND NOT granted AND query LIKE '%xact_lock_shared%'
	)`, uint32(stuck.space), stuck.Incarnation())
	for rival.wait(200 * time.Millisecond) { // also hears of the death
	}
	if !rival.busy("scheduler") {
		t.Fatal("the stopped session has released its lock")
	}
	resume()
	for waited := time.Now(); !rival.wait(time.Second); rival.beat() {
		if time.Since(waited) > patience {
			t.Fatal("the candidate was not notified after the session had ended")
		}
	}
	rival.take("scheduler")
	if err := <-forgotten; err != nil {
		t.Error(err)
	}
}

// Members other than the one that watches a silent node are notified of its silence, also
// if the server does not end its session.
func TestSilentNodeIsReportedToAllMembers(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
	stuck, rival := open(t, b, brief), open(t, b)
	stuck.stick()
	pgtest.PauseBackend(t, server.DSN(), int32(stuck.listener.pid), "ClientRead")
	conn := pgtest.Conn(t, server.DSN())
	if _, err := conn.Exec(t.Context(), "LISTEN "+pgx.Identifier{b.names.NodesChannel()}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	notified := make(chan error, 1)
	go func() {
		_, err := conn.WaitForNotification(ctx)
		notified <- err
	}()
	for {
		select {
		case err := <-notified:
			if err != nil {
				t.Fatalf("no notification of the silent node: %v", err)
			}
			return
		default:
			rival.beat()
			rival.wait(200 * time.Millisecond)
		}
	}
}
