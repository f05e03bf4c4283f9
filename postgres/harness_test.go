package postgres

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience is how long a test waits for something that must happen soon.
const patience = 20 * time.Second

// withinLease is how long a test waits for a notification without heartbeats. It is
// shorter than the lease, after which the server would end the session.
const withinLease = 7 * time.Second

// timing is that of most sessions of these tests: long enough for a machine
// under load, so that nothing expires by accident.
func timing() tenure.Timing {
	return tenure.Timing{
		Lease:           10 * time.Second,
		RefreshInterval: 3 * time.Second,
		Margin:          time.Second,
		CheckInterval:   time.Second,
		LockTimeout:     10 * time.Second,
		FenceTimeout:    5 * time.Second,
	}
}

// newBackend returns a backend on the shared server with a new schema.
func newBackend(t testing.TB) *Backend {
	t.Helper()
	server := pgtest.Shared(t)
	return backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
}

func backendOn(t testing.TB, dsn string, config Config) *Backend {
	t.Helper()
	b, err := New(dsn, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// peer is a session that a test uses in place of the engine.
type peer struct {
	*session
	t       testing.TB
	id      uuid.UUID
	trusted *atomic.Bool // the result of MaySend
	clock   *steppedClock
}

// steppedClock is testClock and what a test has added.
type steppedClock struct {
	clocks.Clock
	added atomic.Int64
}

func (c *steppedClock) Now() clocks.Instant { return c.Clock.Now().Add(time.Duration(c.added.Load())) }

// advance makes time pass for a session.
func (c *steppedClock) advance(d time.Duration) { c.added.Add(int64(d)) }

type peerOptions struct {
	id     uuid.UUID
	name   string // default: derived from the id
	unique bool   // the name must be unique
	timing tenure.Timing
	logger *slog.Logger

	description tenure.Description // default active
	forerunner  clocks.Instant
	previous    int64 // incarnation of the process's session before
}

func open(t testing.TB, b *Backend, changes ...func(*peerOptions)) *peer {
	t.Helper()
	p, err := tryOpen(t, b, changes...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return p
}

func tryOpen(t testing.TB, b *Backend, changes ...func(*peerOptions)) (*peer, error) {
	t.Helper()
	options := peerOptions{id: uuid.New(), timing: timing(), logger: slog.New(slog.NewTextHandler(logWriter{t}, nil))}
	for _, change := range changes {
		change(&options)
	}
	if options.name == "" {
		options.name = "node-" + options.id.String()[:4]
	}
	options.description.Status = cmp.Or(options.description.Status, tenure.StatusActive)
	trusted := new(atomic.Bool)
	trusted.Store(true)
	clock := &steppedClock{Clock: testClock}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := b.Open(ctx, tenure.SessionOptions{
		Node:                tenure.NodeInfo{ID: options.id, Name: options.name, Host: "localhost"},
		Description:         options.description,
		UniqueName:          options.unique,
		Timing:              options.timing,
		Clock:               clock,
		Logger:              options.logger,
		PreviousSessionEnd:  options.forerunner,
		PreviousIncarnation: options.previous,
		Reopened:            options.previous != 0,
		MaySend:             trusted.Load,
	})
	if err != nil {
		return nil, err
	}
	p := &peer{session: s.(*session), t: t, id: options.id, trusted: trusted, clock: clock}
	t.Cleanup(p.Abort)
	return p, nil
}

// lasting is a lease that no test exceeds, also on a machine on which it takes seconds to
// open a session.
func lasting(o *peerOptions) { o.timing.Lease = time.Minute }

// testClock is the clock of all sessions, so that one can report when another ended.
var testClock = clocks.System()

// logWriter sends log lines to the test; those that come after its end are
// dropped.
type logWriter struct{ t testing.TB }

var logMu sync.Mutex

func (w logWriter) Write(line []byte) (int, error) {
	logMu.Lock()
	defer logMu.Unlock()
	if w.t.Context().Err() != nil {
		return io.Discard.Write(line)
	}
	w.t.Logf("%s", line)
	return len(line), nil
}

// try makes one attempt for each role.
func (p *peer) try(roles ...string) []tenure.AcquireResult {
	p.t.Helper()
	candidates := make([]tenure.AcquireRequest, len(roles))
	for i, role := range roles {
		candidates[i].Role = tenure.NamedRole(role)
	}
	attempts, err := p.TryAcquire(candidates)
	if err != nil {
		p.t.Fatalf("try to acquire: %v", err)
	}
	return attempts
}

// take makes one attempt, which must succeed.
func (p *peer) take(role string) tenure.AcquireResult {
	p.t.Helper()
	attempt := p.try(role)[0]
	if attempt.Outcome != tenure.OutcomeGranted {
		p.t.Fatalf("%s: outcome %d, error %v; want it granted", role, attempt.Outcome, attempt.Err)
	}
	return attempt
}

// refused makes one attempt, which must find the role busy.
func (p *peer) refused(role string) tenure.AcquireResult {
	p.t.Helper()
	attempt := p.try(role)[0]
	if attempt.Outcome != tenure.OutcomeHeld {
		p.t.Fatalf("%s: outcome %d, term %d, error %v; want it busy", role, attempt.Outcome, attempt.Term, attempt.Err)
	}
	return attempt
}

// win tries after each notification, as the engine does, until it has acquired the
// role, and returns the attempt.
func (p *peer) win(role string) tenure.AcquireResult {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		attempt := p.try(role)[0]
		switch attempt.Outcome {
		case tenure.OutcomeGranted:
			return attempt
		case tenure.OutcomeFailed:
			p.t.Fatalf("%s: %v", role, attempt.Err)
		}
		pause := attempt.RetryIn
		if pause == 0 {
			pause = p.opening.Timing.CheckInterval
		}
		p.wait(min(pause, p.opening.Timing.Lease/3))
		p.beat()
	}
	p.t.Fatalf("%s was not won in %v", role, patience)
	panic("unreachable")
}

// wait waits for a notification.
func (p *peer) wait(limit time.Duration) bool {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	changed, err := p.Wait(ctx)
	if err != nil {
		p.t.Fatalf("wait: %v", err)
	}
	return changed
}

func (p *peer) beat() {
	p.t.Helper()
	if _, err := p.Heartbeat(tenure.Load{}); err != nil {
		p.t.Fatalf("heartbeat: %v", err)
	}
}

func (p *peer) release(role string, reason tenure.EndReason) {
	p.t.Helper()
	if err := p.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole(role), Term: p.heldRoles[role].term, Reason: reason}}); err != nil {
		p.t.Fatalf("release %s: %v", role, err)
	}
}

// row reads one value from the schema.
func row[T any](t testing.TB, b *Backend, sql string, args ...any) T {
	t.Helper()
	var value T
	if err := pgtest.Conn(t, b.connect.Config.ConnString()).QueryRow(context.Background(), b.names.SQL(sql), args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// exec changes something in the schema without using a session.
func exec(t testing.TB, b *Backend, sql string, args ...any) {
	t.Helper()
	if _, err := pgtest.Conn(t, b.connect.Config.ConnString()).Exec(context.Background(), b.names.SQL(sql), args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// withoutTriggers lets a test change the rows of roles that are led.
func withoutTriggers(t testing.TB, b *Backend) {
	t.Helper()
	exec(t, b, "ALTER TABLE {terms} DISABLE TRIGGER USER")
}

// dropSchema removes an installation while nodes live. Its locks and those of a node's
// statement may wait for each other; the server then cancels the one that has waited for
// deadlock_timeout, here the node's.
const dropSchema = `SET deadlock_timeout = '10min'; DROP SCHEMA {schema} CASCADE; `

// eventually waits until a condition in the database holds.
func eventually(t testing.TB, b *Backend, sql string, args ...any) {
	t.Helper()
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		var holds *bool
		if err := conn.QueryRow(context.Background(), b.names.SQL(sql), args...).Scan(&holds); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatalf("%s: %v", sql, err)
		}
		if holds != nil && *holds {
			return
		}
	}
	t.Fatalf("after %v still not: %s", patience, sql)
}
