package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func numbered(n int) []string {
	roles := make([]string, n)
	for i := range roles {
		roles[i] = fmt.Sprintf("role-%04d", i)
	}
	return roles
}

func TestThousandRolesAreAcquiredInOneCall(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	roles := numbered(1000)
	terms := make(map[string]int64, len(roles))
	for i, attempt := range first.try(roles...) {
		if attempt.Outcome != tenure.OutcomeGranted || attempt.Previous != 0 {
			t.Fatalf("%s: %+v; want its first term", roles[i], attempt)
		}
		terms[roles[i]] = attempt.Term
	}
	for i, attempt := range second.try(roles...) {
		if attempt.Outcome != tenure.OutcomeHeld {
			t.Fatalf("%s: %+v; want it busy", roles[i], attempt)
		}
	}
	second.drain()
	first.network.Close()
	missing := roles
	for deadline := time.Now().Add(patience); len(missing) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d roles were not taken over", len(missing))
		}
		second.wait(20 * time.Millisecond)
		var left []string
		for i, attempt := range second.try(missing...) {
			switch {
			case attempt.Outcome == tenure.OutcomeHeld:
				left = append(left, missing[i])
			case attempt.Outcome != tenure.OutcomeGranted || attempt.Previous != terms[missing[i]]:
				t.Fatalf("%s: %+v; want its second term", missing[i], attempt)
			}
		}
		missing = left
	}
	if held := row[int](t, b, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", second.listener.pid); held != 1002 { // with the node's and the installation's
		t.Errorf("the session holds %d locks, want 1002", held)
	}
	if err := second.Release(releasesOf(second)); err != nil {
		t.Fatal(err)
	}
	if n := row[int](t, b, "SELECT count(*) FROM {terms} WHERE ended_at IS NULL"); n > 0 {
		t.Errorf("%d terms are open after their release", n)
	}
	if held := row[int](t, b, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", second.listener.pid); held != 2 {
		t.Errorf("the session holds %d locks after the release, want 2", held)
	}
}

func releasesOf(p *peer) []tenure.ReleaseRequest {
	var all []tenure.ReleaseRequest
	for _, held := range p.heldRoles {
		all = append(all, tenure.ReleaseRequest{Role: held.role, Term: held.term, Reason: history.EndResigned})
	}
	return all
}

// attempt makes one attempt for one role.
func (p *peer) attempt(c tenure.AcquireRequest) tenure.AcquireResult {
	p.t.Helper()
	attempts, err := p.TryAcquire([]tenure.AcquireRequest{c})
	if err != nil {
		p.t.Fatal(err)
	}
	return attempts[0]
}

func TestRolesWithOneKeyAreRefused(t *testing.T) {
	t.Parallel()
	b := backendOn(t, pgtest.Shared(t).Database(t), Config{}) // numeric keys are shared by the whole database
	first, second := open(t, b), open(t, b)
	single, pair := tenure.KeyRole(-9), tenure.KeyPairRole(-4, 2)
	attempts, err := first.TryAcquire([]tenure.AcquireRequest{
		{Role: single}, {Role: pair}, {Role: tenure.NamedRole("same").WithKey(-9)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tenure.Outcome{tenure.OutcomeGranted, tenure.OutcomeGranted, tenure.OutcomeFailed} {
		if attempts[i].Outcome != want {
			t.Errorf("candidate %d: %+v; want outcome %d", i, attempts[i], want)
		}
	}
	for who, p := range map[string]*peer{"the leader": first, "another node": second} {
		again := p.attempt(tenure.AcquireRequest{Role: tenure.NamedRole("same").WithKey(-9)})
		if again.Outcome != tenure.OutcomeFailed || !errors.Is(again.Err, tenure.ErrKeyMismatch) || !strings.Contains(again.Err.Error(), single.Name()) {
			t.Errorf("a second role with the key of another, on %s: %+v; want ErrKeyMismatch that names the other", who, again)
		}
	}
	if n := row[int](t, b, "SELECT count(*)::int FROM {terms}"); n != 2 {
		t.Errorf("%d rows, want one for each key", n)
	}
	for _, sql := range []string{"SELECT pg_try_advisory_lock(-9)", "SELECT pg_try_advisory_lock(-4, 2)"} {
		if row[bool](t, b, sql) {
			t.Errorf("%s succeeds beside the leader", sql)
		}
	}
	for _, role := range []tenure.Role{single, pair} {
		if attempt := second.attempt(tenure.AcquireRequest{Role: role}); attempt.Outcome != tenure.OutcomeHeld {
			t.Errorf("%s: %+v; want it busy", role, attempt)
		}
	}

	mismatch := second.attempt(tenure.AcquireRequest{Role: tenure.NamedRole(single.Name()).WithKey(10)})
	if mismatch.Outcome != tenure.OutcomeFailed || !errors.Is(mismatch.Err, tenure.ErrKeyMismatch) {
		t.Errorf("another key for the same name: %+v; want ErrKeyMismatch", mismatch)
	}
	if !row[bool](t, b, "SELECT pg_try_advisory_lock(10)") {
		t.Error("the other key is still locked")
	}
	if row[bool](t, b, "SELECT ended_at IS NOT NULL FROM {terms} WHERE role = $1", single.Name()) {
		t.Error("the wrong key closed the leader's term")
	}
	first.release(single.Name(), history.EndResigned)
	first.release(pair.Name(), history.EndResigned)
	for _, role := range []tenure.Role{single, pair} {
		if attempt := second.attempt(tenure.AcquireRequest{Role: role}); attempt.Outcome != tenure.OutcomeGranted {
			t.Errorf("%s after its release: %+v; want it granted", role, attempt)
		}
	}
}

func TestInstallationsInOneDatabaseAreIndependent(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	one := backendOn(t, server.DSN(), Config{Schema: schema})
	other := backendOn(t, server.DSN(), Config{Schema: schema, Prefix: `it's "other"_`})
	first, second := open(t, one), open(t, other)
	first.take("scheduler")
	second.take("scheduler")
	first.release("scheduler", history.EndResigned)
	second.beat()
	second.refusedBy(open(t, other))
	second.drain()
	first.Abort()
	if second.wait(100 * time.Millisecond) {
		t.Error("a node was notified of a death in another installation")
	}
}

func TestHolderIsReportedToRecoveringCandidate(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	candidate := tenure.AcquireRequest{Role: tenure.NamedRole("scheduler"), Recovering: true}
	if attempt := second.attempt(candidate); attempt.Outcome != tenure.OutcomeHeld || attempt.Holder != first.id {
		t.Errorf("%+v; want it busy, held by %v", attempt, first.id)
	}
	if attempt := second.refused("scheduler"); attempt.Holder != uuid.Nil {
		t.Errorf("unasked, the holder %v was reported", attempt.Holder)
	}
}

func TestTermSettlesAfterUncleanEnd(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	const settle = shortWait
	first, second := open(t, b), open(t, b, func(o *peerOptions) { o.timing.Settle = settle })
	for _, clean := range []tenure.EndReason{history.EndResigned, history.EndSteppedDown, history.EndHandedOver, history.EndShutdown} {
		first.take("scheduler")
		second.refused("scheduler")
		first.release("scheduler", clean)
		second.take("scheduler") // without a wait
		second.release("scheduler", history.EndResigned)
	}

	first.take("scheduler")
	second.drain()
	first.network.Close()
	attempt := second.firstAttempt("scheduler")
	lockedAt := second.heldRoles["scheduler"].lockedAt
	second.wantWaitUntil("scheduler", attempt, lockedAt+settle, lockedAt+settle)
	if attempt.Fenced {
		t.Errorf("%+v; want it to wait without a fenced transaction", attempt)
	}
	second.winAfterWait("scheduler")
}

// A role whose term is pending can be released, and its lock is then free.
func TestPendingRoleCanBeReleased(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second, third := open(t, b), open(t, b, func(o *peerOptions) { o.timing.Settle = time.Hour }), open(t, b)
	first.take("scheduler")
	first.Abort()
	for second.try("scheduler")[0].Outcome != tenure.OutcomePending {
		second.wait(10 * time.Millisecond)
	}
	second.beat()
	third.refused("scheduler")
	if err := second.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("scheduler")}}); err != nil {
		t.Fatal(err)
	}
	third.take("scheduler")
}

// A role row that another session is writing delays no other role.
func TestLockedRowDelaysOnlyItsRole(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	roles := []string{"a", "b", "c"}
	first.try(roles...)
	second.try(roles...)
	ctx := context.Background()
	tx, err := pgtest.Conn(t, b.connect.Config.ConnString()).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, b.names.SQL("SELECT FROM {terms} WHERE role = 'b' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	first.Abort()
	second.win("a")
	second.win("c")
	for second.busy("b") {
		second.wait(10 * time.Millisecond)
	}
	start := time.Now()
	attempt := second.try("b")[0]
	if attempt.Outcome != tenure.OutcomePending || !attempt.Fenced || time.Since(start) > second.opening.Timing.RefreshInterval/2 {
		t.Errorf("%+v after %v; want it waiting, immediately", attempt, time.Since(start))
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	second.win("b")
}

// busy tries and reports whether another session holds the role.
func (p *peer) busy(role string) bool {
	p.t.Helper()
	return p.try(role)[0].Outcome == tenure.OutcomeHeld
}

func TestDeletedRowIsReported(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	p.release("scheduler", history.EndResigned)
	// Set by hand: the row is one that an operator deletes.
	exec(t, b, "ALTER TABLE {terms} DISABLE TRIGGER USER; DELETE FROM {terms}")
	attempt := p.try("scheduler")[0]
	if attempt.Outcome != tenure.OutcomeFailed || !errors.Is(attempt.Err, tenure.ErrLock) {
		t.Errorf("%+v; want a failure", attempt)
	}
	if len(p.heldRoles) > 0 {
		t.Error("the lock is still held")
	}
	p.take("scheduler") // the row is created again
}

// The wait after a server change is the longest lease, and the term begins when it is over.
// Set by hand: the wait for a node that never returns is long, and its two ends are 20 s
// apart here. TestWaitAfterRestartCountsOnce restarts a server and waits.
func TestTermWaitsAfterServerChange(t *testing.T) {
	t.Parallel()
	const longer = 20 * time.Second // than the lease of the session
	changed := map[string]string{
		"restarted":       "UPDATE {terms} SET server_epoch = 'of an earlier life'",
		"another lineage": "UPDATE {terms} SET server_lineage = 'of another timeline'",
	}
	for name, sql := range changed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			first := open(t, b)
			took := first.take("scheduler")
			exec(t, b, "UPDATE {terms} SET lease_ms = $1", longer.Milliseconds())
			first.release("scheduler", history.EndResigned) // whatever the row contains
			exec(t, b, sql)
			exec(t, b, "UPDATE {nodes} SET server_epoch = 'of an earlier life', lease_ms = 300, last_heartbeat = last_heartbeat + interval '1 hour'") // no reunion
			second := open(t, b)
			from := testClock.Now().Mono
			if name == "restarted" { // most of the wait is over
				second.server.UpAt = from - longer + shortWait
			}
			attempt := second.firstAttempt("scheduler")
			if name == "restarted" {
				second.wantWaitUntil("scheduler", attempt, second.server.UpAt+longer, second.server.UpAt+longer)
			} else { // this server may be a copy, so the wait counts from the lock
				second.wantWaitUntil("scheduler", attempt, from+longer, testClock.Now().Mono+longer)
				second.heldRoles["scheduler"].wait.until = testClock.Now().Mono + shortWait
			}
			if attempt = second.winAfterWait("scheduler"); attempt.Previous != took.Term {
				t.Errorf("the term is %d after %d, want it after %d", attempt.Term, attempt.Previous, took.Term)
			}
		})
	}
	t.Run("locks were lost, and the role's row too", func(t *testing.T) {
		t.Parallel()
		b := newBackend(t)
		if err := b.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		exec(t, b, "TRUNCATE {server}")
		p := open(t, b)
		lease := p.opening.Timing.Lease
		p.server.BornAt = testClock.Now().Mono - lease + shortWait // most of the wait is over
		attempt := p.try("scheduler")[0]
		p.wantWaitUntil("scheduler", attempt, p.server.BornAt+lease, p.server.BornAt+lease)
		if attempt = p.winAfterWait("scheduler"); attempt.Previous != 0 {
			t.Errorf("the term is %d after %d, want it after none", attempt.Term, attempt.Previous)
		}
		p.take("later") // the lease is over now
	})
}

func TestRolesFailWhenLockTableIsFull(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"max_locks_per_transaction": "10", "max_connections": "20",
	}})
	b := backendOn(t, server.DSN(), Config{})
	p := open(t, b)
	granted, full := 0, 0
	for i, attempt := range p.try(numbered(600)...) {
		switch {
		case attempt.Outcome == tenure.OutcomeGranted:
			granted++
		case attempt.Outcome == tenure.OutcomeFailed && errors.Is(attempt.Err, ErrLockTableFull):
			full++
		default:
			t.Fatalf("role %d: %+v", i, attempt)
		}
	}
	if granted == 0 || granted > 100 || full == 0 {
		t.Errorf("%d roles were granted and %d refused; want at most half of 200 locks granted", granted, full)
	}
	p.beat()

	// If the count is wrong, the server's own limit is reached.
	p.table.capacity.PerTransaction = 1_000_000
	failed := 0
	for chunk := range slices.Chunk(numbered(20_000), 1000) {
		for i, attempt := range p.try(chunk...) {
			if attempt.Outcome == tenure.OutcomeFailed {
				failed++
				if !errors.Is(attempt.Err, ErrLockTableFull) || !strings.Contains(attempt.Err.Error(), "set max_locks_per_transaction") {
					t.Fatalf("%s: %v", chunk[i], attempt.Err)
				}
			}
		}
		if failed > 0 {
			break
		}
	}
	if failed == 0 {
		t.Fatal("the lock table never ended")
	}
	if held := row[int](t, b, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); held != 2+len(p.heldRoles) {
		t.Errorf("%d locks are held for %d roles", held, len(p.heldRoles))
	}
	row[int](t, b, "SELECT count(*) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid") // queries of other programs work
	for range 8 {
		p.beat()
	}
}

// If two sessions add a role at the same time, the second one finds it,
// whichever of its unique keys the server checks first.
func TestConcurrentlyAddedRolesAreFound(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	peers := make([]*peer, 6)
	for i := range peers {
		peers[i] = open(t, b, lasting)
	}
	for round := range 30 {
		role := fmt.Sprintf("role-%d", round)
		outcomes := make([]tenure.AcquireResult, len(peers))
		start := make(chan struct{})
		var group sync.WaitGroup
		for i, p := range peers {
			group.Go(func() {
				<-start
				outcomes[i] = p.try(role)[0]
			})
		}
		close(start)
		group.Wait()
		granted := 0
		for _, attempt := range outcomes {
			switch attempt.Outcome {
			case tenure.OutcomeGranted:
				granted++
			case tenure.OutcomeFailed:
				t.Fatalf("%s: %v", role, attempt.Err)
			}
		}
		if granted != 1 {
			t.Fatalf("%s: %d of %d began a term", role, granted, len(peers))
		}
	}
}
