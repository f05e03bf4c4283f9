package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

func named(name string) func(*peerOptions) {
	return func(o *peerOptions) { o.name, o.unique = name, true }
}

func TestUniqueNameIsRefusedWhileInUse(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	first := open(t, b, named("worker-0"))
	start := time.Now()
	_, err := tryOpen(t, b, named("worker-0"))
	if !errors.Is(err, tenure.ErrNameTaken) || !strings.Contains(err.Error(), first.id.String()) || !strings.Contains(err.Error(), "localhost") {
		t.Fatalf("a name that is taken: %v; want ErrNameTaken that says by whom", err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("the refusal took %v", took)
	}
	open(t, b, named("worker-1"))
	open(t, b, func(o *peerOptions) { o.name = "worker-0" }) // a node that allows equal names
	if row[int](t, b, "SELECT count(*) FROM {nodes}") != 3 {
		t.Error("the node that was refused has left a row")
	}
	if free := row[bool](t, b, "SELECT pg_try_advisory_xact_lock($1, 0) FROM {installation}", first.space); !free {
		t.Error("the lock of names is still held")
	}
}

// A process that was killed does not keep its name, even if no node has
// detected its death yet.
func TestKilledNodeDoesNotKeepItsName(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	for range 5 {
		p := open(t, b, named("worker-0"))
		p.Abort() // as if killed: its row stays, and no node watches it
		p = open(t, b, named("worker-0"))
		again := open(t, b, named("worker-0"), func(o *peerOptions) { o.id = p.id }) // the same node
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		p.Abort()
	}
}

// A lock timeout must not be taken for a free name.
func TestLockTimeoutIsNotAFreeName(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	tx, err := b.connect.Dial(t.Context(), pgdial.Question, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Discard(tx)
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_lock($1, 0)", p.space); err != nil {
		t.Fatal(err)
	}
	_, err = tryOpen(t, b, named("worker-0"), func(o *peerOptions) { o.timing.RefreshInterval = 200 * time.Millisecond })
	if err == nil || errors.Is(err, tenure.ErrRefused) {
		t.Errorf("while another node joins without end: %v; want an error that may pass", err)
	}
}

// All nodes have looked for the name, or wait to do so, before the first one
// can write its row.
func TestOnlyOneConcurrentJoinGetsAName(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	if err := b.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	tx, err := pgtest.Conn(t, b.connect.Config.ConnString()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const rivals = 4
	var (
		name  = b.config.Schema
		group sync.WaitGroup
		errs  [rivals]error
	)
	for i := range rivals {
		id := uuid.New()
		// A row that is being written: another writer has to wait.
		_, err := tx.Exec(t.Context(), b.names.SQL(`INSERT INTO {nodes} (id, incarnation, name, hostname, lease_ms, pid, backend_start)
			VALUES ($1, 0, '', '', 1, 0, now())`), id)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			_, errs[i] = tryOpen(t, b, named(name), func(o *peerOptions) {
				o.id, o.timing.RefreshInterval, o.timing.Lease = id, patience, 3*patience
			})
		})
	}
	eventually(t, b, "SELECT count(*) = $2 FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'",
		link.ApplicationName("tenure", name+" session"), rivals)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, tenure.ErrNameTaken):
			t.Errorf("%v; want ErrNameTaken", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d nodes have the name, want one", won, rivals)
	}
}

// A transaction that holds the row of a role keeps no node from joining, also if the last
// leader of the role died so long ago that a join removes it.
func TestLockedRowOfLongDeadLeaderDelaysNoJoin(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	dead := open(t, b)
	dead.take("scheduler")
	dead.Abort()
	eventually(t, b, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", dead.space, dead.incarnation)
	// Set by hand: two days cannot pass in a test.
	exec(t, b, `
		UPDATE {nodes}
		SET status = 'dead', last_heartbeat = last_heartbeat - interval '2 days', died_at = clock_timestamp() - interval '2 days'
		WHERE id = $1`, dead.id)

	holder := pgtest.Conn(t, b.connect.Config.ConnString())
	if _, err := holder.Exec(t.Context(), b.names.SQL("BEGIN; SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	p, err := tryOpen(t, b)
	if err != nil {
		t.Fatalf("while a transaction holds the row: %v", err)
	}
	if n := row[int](t, b, "SELECT count(*) FROM {nodes} WHERE id = $1", dead.id); n != 1 {
		t.Errorf("the registry has %d rows of the dead leader, whose term cannot be closed yet; want 1", n)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	open(t, b)
	if n := row[int](t, b, "SELECT count(*) FROM {nodes} WHERE id = $1", dead.id); n != 0 {
		t.Errorf("the registry has %d rows of the dead leader after the transaction; want none", n)
	}
	if reason := row[string](t, b, "SELECT coalesce(end_reason, 'open') FROM {terms} WHERE role = 'scheduler'"); reason != string(history.EndCrashed) && reason != string(history.EndLeaseExpired) {
		t.Errorf("the term of the dead leader: %s; want it closed", reason)
	}
}
