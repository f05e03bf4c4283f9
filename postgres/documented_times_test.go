package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// The tests of this file contain durations as the documents state them.

// A join removes nodes that died more than a day ago. A day cannot pass in a test, so
// their last heartbeats are set back.
func TestDeadNodesStayForADay(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	watching := open(t, b)
	dead := map[string]*peer{"23 hours": open(t, b), "25 hours": open(t, b)}
	watching.drain() // it was alone, and is notified of the others on its session
	for age, p := range dead {
		p.Abort()
		eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
		// Set by hand: no test can wait for a day.
		exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - $2::text::interval, died_at = died_at - $2::text::interval WHERE id = $1", p.id, age)
	}
	open(t, b)
	for age, stays := range map[string]bool{"23 hours": true, "25 hours": false} {
		if got := row[bool](t, b, "SELECT EXISTS (SELECT FROM {nodes} WHERE id = $1)", dead[age].id); got != stays {
			t.Errorf("a node that died %s ago is in the registry: %t; want %t, since dead nodes stay for a day", age, got, stays)
		}
	}
}

// An offer to a node that does not answer fails after 4 s.
func TestOfferFailsAfterFourSeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	leader, silent := open(t, b, lasting), open(t, b, lasting)
	leader.take("scheduler")
	begun := time.Now()
	err := b.Request(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: "scheduler", Target: silent.id, By: "tests"})
	took := time.Since(begun)
	if !errors.Is(err, tenure.ErrNotActive) {
		t.Errorf("%v; want ErrNotActive", err)
	}
	if took < 4*time.Second || took > 5*time.Second {
		t.Errorf("the offer failed after %v; want 4s", took)
	}
}

// A change of the installation waits at most 3 s for sessions to end.
func TestInstallationIsAwaitedForThreeSeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	open(t, b, lasting)
	begun := time.Now()
	err := b.MigrateDown(t.Context(), core.Name, 0)
	took := time.Since(begun)
	if !errors.Is(err, dberr.ErrInstallationInUse) {
		t.Errorf("%v; want ErrInstallationInUse", err)
	}
	if took < 2900*time.Millisecond || took > 4*time.Second {
		t.Errorf("the change of the installation failed after %v; want 3s", took)
	}
}

// waits notes how long statements with a text took, and the pauses before them.
type waits struct {
	text   string
	second func() // is called when the second one ends

	mu     sync.Mutex
	took   []time.Duration
	pauses []time.Duration
	ended  time.Time
}

type begunKey struct{}

func (w *waits) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(data.SQL, w.text) {
		return ctx
	}
	return context.WithValue(ctx, begunKey{}, time.Now())
}

func (w *waits) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	begun, mine := ctx.Value(begunKey{}).(time.Time)
	if !mine {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended.IsZero() {
		w.pauses = append(w.pauses, begun.Sub(w.ended))
	}
	w.ended = time.Now()
	w.took = append(w.took, w.ended.Sub(begun))
	if len(w.took) == 2 {
		w.second()
	}
}

// connect is for Config.Connect.
func (w *waits) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.Tracer = w
	return pgx.ConnectConfig(ctx, config)
}

// A migration waits 300 ms for a table, pauses for a second, and waits 700 ms then.
func TestMigrationWaitsForTheDocumentedTimes(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &waits{text: "ADD COLUMN trial", second: cancel}
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t), Connect: w.connect})
	if err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.installation.Core = additive(`ALTER TABLE {terms} ADD COLUMN trial integer`)
	holder := server.Conn(t)
	if _, err := holder.Exec(t.Context(), b.names.SQL(`BEGIN; LOCK TABLE {terms} IN ROW SHARE MODE`)); err != nil {
		t.Fatal(err)
	}
	if err := b.Migrate(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want it canceled in the second pause", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) != 2 || len(w.pauses) != 1 {
		t.Fatalf("waits for the table: %v, pauses %v; want two and one", w.took, w.pauses)
	}
	for name, c := range map[string]struct{ got, want time.Duration }{
		"first wait":  {w.took[0], 300 * time.Millisecond},
		"pause":       {w.pauses[0], time.Second},
		"second wait": {w.took[1], 700 * time.Millisecond},
	} {
		if c.got < c.want-time.Millisecond || c.got > 2*c.want {
			t.Errorf("the %s of the migration lasted %v; want %v", name, c.got, c.want)
		}
	}
}

// The settings that the server shows for sessions of two leases, and for a watch.
func TestSettingsFollowTheLease(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	show := func(what string, conn *pgx.Conn, want map[string]string) {
		t.Helper()
		for name, value := range want {
			var got string
			if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != value {
				t.Errorf("%s: %s is %s, want %s", what, name, got, value)
			}
		}
	}
	for lease, want := range map[time.Duration]map[string]string{
		10 * time.Second: {
			"tcp_user_timeout": "20000", "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "3",
			"client_connection_check_interval": "1s", "tcp_keepalives_count": "4",
			"idle_session_timeout": "10s", "idle_in_transaction_session_timeout": "10s",
		},
		40 * time.Second: {
			"tcp_user_timeout": "80000", "tcp_keepalives_idle": "40", "tcp_keepalives_interval": "10",
			"client_connection_check_interval": "1s", "tcp_keepalives_count": "4",
			"idle_session_timeout": "40s", "idle_in_transaction_session_timeout": "40s",
		},
	} {
		show("a session with a lease of "+lease.String(), open(t, b, leaseOf(lease)).conn, want)
	}
	watch, err := b.connect.Dial(t.Context(), pgdial.Watch, "of a test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Discard(watch)
	show("a watch", watch, map[string]string{
		"tcp_user_timeout": "80000", "tcp_keepalives_idle": "40", "tcp_keepalives_interval": "10",
		"client_connection_check_interval": "5s", "tcp_keepalives_count": "4", "idle_session_timeout": "90s",
	})
}
