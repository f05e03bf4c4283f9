package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A node that returns while no other node runs records when its last session
// ended, and for how long the role was vacant: no other node was there to do
// so.
func TestReturningNodeRecordsEndOfItsLastSession(t *testing.T) {
	t.Parallel()
	const away = 10 * time.Minute
	hourAgo := func(t *testing.T, b *Backend) {
		exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '2 hours'")
		exec(t, b, "UPDATE {nodes} SET last_heartbeat = clock_timestamp() - interval '1 hour'")
	}
	for name, c := range map[string]struct {
		between func(*testing.T, *Backend)
		known   bool          // when the connection ended
		ended   time.Duration // how long ago
		reason  tenure.EndReason
		vacancy bool // the vacancy is known
	}{
		"its connection broke": {
			between: func(t *testing.T, b *Backend) {
				exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '2 hours'")
				exec(t, b, "UPDATE {nodes} SET last_heartbeat = clock_timestamp() - interval '10 minutes 2 s'")
			},
			known: true, ended: away, reason: history.EndCrashed, vacancy: true,
		},
		"its lease ended": {between: hourAgo, known: true, ended: time.Hour - 2*timing().Lease, reason: history.EndLeaseExpired, vacancy: true},
		"ended at an unknown time, long ago": {
			between: hourAgo, ended: time.Hour - 2*timing().Lease, reason: history.EndLeaseExpired, vacancy: true,
		},
		"ended at an unknown time, a moment ago": {between: func(*testing.T, *Backend) {}, reason: history.EndCrashed, vacancy: true},
		"it was found dead": {
			between: func(t *testing.T, b *Backend) {
				exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '2 hours'")
				exec(t, b, "UPDATE {nodes} SET status = 'dead', died_at = clock_timestamp() - interval '11 minutes', last_heartbeat = clock_timestamp() - interval '11 minutes 2 s'")
			},
			known: true, ended: away + time.Minute, reason: history.EndCrashed, vacancy: true,
		},
		"on another server": {
			between: func(t *testing.T, b *Backend) {
				hourAgo(t, b)
				exec(t, b, "UPDATE {terms} SET server_epoch = 'earlier'")
			},
			known: true, ended: time.Hour - 2*timing().Lease, reason: history.EndServerChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "its connection broke" && name != "its lease ended" {
				pgtest.Long(t)
			}
			t.Parallel()
			b := newBackend(t)
			p := open(t, b)
			took := p.take("scheduler")
			p.Abort()
			c.between(t, b)
			eventually(t, b, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", p.space, p.incarnation)
			back := open(t, b, func(o *peerOptions) {
				o.id = p.id
				if c.known {
					now := testClock.Now()
					o.forerunner = clocks.Instant{Mono: now.Mono - away, Wall: now.Wall.Add(-away)}
				}
			})
			now := row[time.Time](t, b, "SELECT clock_timestamp()")
			records, err := b.History(context.Background(), history.Query{})
			if err != nil || len(records) != 1 || records[0].Term != took.Term || records[0].Reason != c.reason {
				t.Fatalf("%+v, %v; want term %d, which ended: %s", records, err, took.Term, c.reason)
			}
			ago := now.Sub(records[0].Ended)
			if ago < c.ended || ago > c.ended+patience {
				t.Errorf("it ended %v ago; want %v", ago, c.ended)
			}
			next := back.win("scheduler")
			if c.vacancy && (next.PrecedingVacancy < ago || next.PrecedingVacancy > ago+patience) || !c.vacancy && next.PrecedingVacancy >= 0 {
				t.Errorf("no node led for %v; want %v, known: %v", next.PrecedingVacancy, ago, c.vacancy)
			}
		})
	}
}

// While the server still has the node's last session, its terms stay open, and
// a row that another session is writing is left to the next leader. The
// returning node waits for neither.
func TestReturningNodeDoesNotWaitForOpenSession(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	ctx := context.Background()
	again := func(t *testing.T, b *Backend, p *peer) {
		begun := time.Now()
		open(t, b, func(o *peerOptions) { o.id = p.id })
		if took := time.Since(begun); took > patience/2 {
			t.Errorf("coming back took %v", took)
		}
	}
	goesOn := func(t *testing.T, b *Backend) {
		t.Helper()
		if !row[bool](t, b, "SELECT ended_at IS NULL FROM {terms}") {
			t.Error("the term was closed")
		}
	}
	t.Run("a session that is still open", func(t *testing.T) {
		t.Parallel()
		b := newBackend(t)
		p := open(t, b)
		p.take("scheduler")
		again(t, b, p)
		goesOn(t, b)
	})
	t.Run("a row that is locked", func(t *testing.T) {
		t.Parallel()
		b := newBackend(t)
		p := open(t, b)
		p.take("scheduler")
		conn := pgtest.Conn(t, b.connect.Config.ConnString())
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx)
		if _, err := tx.Exec(ctx, b.names.SQL("SELECT FROM {terms} FOR UPDATE")); err != nil {
			t.Fatal(err)
		}
		p.Abort()
		eventually(t, b, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", p.space, p.incarnation)
		again(t, b, p)
		goesOn(t, b)
	})
}
