package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func impatient(o *peerOptions) { o.timing.FenceTimeout = 100 * time.Millisecond }

// fenceLater sets a fence timeout that is longer than fenceSlack: a doubled one is noticed.
func fenceLater(o *peerOptions) { o.timing.FenceTimeout = 1500 * time.Millisecond }

// fenceSlack is the time from the fence timeout to the term: a connection that terminates
// the transactions, once more for those that waited behind others, and the next attempt.
const fenceSlack = 1200 * time.Millisecond

// winFenced is win for a role whose row transactions hold. It checks when they are
// terminated, counted from the attempt that first saw the row held: within fenceSlack
// and more after the fence timeout.
func (p *peer) winFenced(role string, more time.Duration) tenure.AcquireResult {
	p.t.Helper()
	var seen time.Time
	for begun := time.Now(); time.Since(begun) < patience; {
		attempt := p.try(role)[0]
		if seen.IsZero() && attempt.Fenced {
			seen = time.Now()
		}
		if attempt.Outcome == tenure.OutcomeGranted {
			p.checkFenceTimeout(seen, more)
			return attempt
		}
		p.wait(max(attempt.RetryIn, time.Millisecond))
	}
	p.t.Fatalf("%s was not won in %v", role, patience)
	panic("unreachable")
}

// checkFenceTimeout checks that a term begins soon after the fence timeout.
func (p *peer) checkFenceTimeout(seen time.Time, more time.Duration) {
	p.t.Helper()
	if seen.IsZero() {
		p.t.Error("the row was never seen held")
		return
	}
	took, timeout := time.Since(seen), p.opening.Timing.FenceTimeout
	if latest := timeout + fenceSlack + more; took < timeout-time.Millisecond || took > latest {
		p.t.Errorf("Invariant 7: the term began %v after the row was seen held; want between the fence timeout of %v and %v", took, timeout, latest)
	}
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logBuffer) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func logTo(l *logBuffer) func(*peerOptions) {
	return func(o *peerOptions) { o.logger = slog.New(slog.NewTextHandler(l, nil)) }
}

// A worker that is stopped during its transaction must not stop the election.
// Several such transactions hold the row together.
func TestStoppedFencedTransactionsAreTerminated(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first, second := open(t, b), open(t, b, fenceLater)
	led := first.take("scheduler")

	ctx := context.Background()
	stopped := first.stopFenced(pool, "scheduler", 3)
	bystander, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer bystander.Rollback(ctx)
	if _, err := bystander.Exec(ctx, b.names.SQL("INSERT INTO {schema}.work (term) VALUES (0)")); err != nil {
		t.Fatal(err)
	}

	first.Abort()
	if next := second.winFenced("scheduler", 0); next.Previous != led.Term {
		t.Errorf("term %d follows %d, want the leader's, %d", next.Term, next.Previous, led.Term)
	}
	for _, tx := range stopped {
		if err := tx.Commit(ctx); err == nil {
			t.Error("a transaction of the old term was committed after the new one began")
		}
	}
	if err := bystander.Commit(ctx); err != nil {
		t.Errorf("a bystander's transaction was ended too: %v", err)
	}
}

// stopFenced leaves some fenced transactions of a term open.
func (p *peer) stopFenced(pool *pgxpool.Pool, role string, n int) (stopped []pgx.Tx) {
	p.t.Helper()
	ctx := context.Background()
	for range n {
		tx, err := pool.Begin(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = tx.Rollback(ctx) }) // before the pool is closed
		if err := p.backend.fence(ctx, tx, p.mark(role)); err != nil {
			p.t.Fatal(err)
		}
		stopped = append(stopped, tx)
	}
	return stopped
}

// One round terminates all of them: each further round would keep the role
// vacant for longer.
func TestOneRoundTerminatesAllFencedTransactions(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first, second := open(t, b), open(t, b)
	led := first.take("scheduler")
	stopped := first.stopFenced(pool, "scheduler", 3)
	first.Abort()
	ended, err := second.terminator.round([]string{"scheduler"}, []int64{led.Term})
	if err != nil || ended != len(stopped) {
		t.Errorf("Invariant 7: one round terminated %d of %d fenced transactions, error %v; want all of them", ended, len(stopped), err)
	}
}

func TestPreparedTransactionIsReported(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"as a whole":     "SELECT",
		"in a savepoint": "SAVEPOINT s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPreparedTransactionIsNamed(t, before)
		})
	}
}

func testPreparedTransactionIsNamed(t *testing.T, before string) {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "2"}})
	b := backendOn(t, server.DSN(), Config{})
	pool := work(t, b)
	log := new(logBuffer)
	first, second := open(t, b), open(t, b, impatient, logTo(log))
	first.take("scheduler")

	ctx := context.Background()
	conn := server.Conn(t)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, before); err != nil {
		t.Fatal(err)
	}
	if err := b.fence(ctx, tx, first.mark("scheduler")); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "PREPARE TRANSACTION 'it''s mine'"); err != nil {
		t.Fatal(err)
	}

	first.Abort()
	rolledBack := false
	for deadline := time.Now().Add(patience); ; {
		attempt := second.try("scheduler")[0]
		if attempt.Outcome == tenure.OutcomeGranted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the next term never began")
		}
		second.wait(max(attempt.RetryIn, time.Millisecond))
		if !rolledBack && log.contains(`ROLLBACK PREPARED E'it''s mine'`) {
			if _, err := pool.Exec(ctx, "ROLLBACK PREPARED 'it''s mine'"); err != nil {
				t.Fatal(err)
			}
			rolledBack = true
		}
	}
	if !rolledBack {
		t.Error("the term began while the prepared transaction stood")
	}
}

// With the privileges that it needs to fence, an application can lock the row
// of a role in several ways and leave its transaction open. The election
// continues.
// Set by hand: an application has the privilege for this update.
func TestTransactionsThatHoldTheRowAreTerminated(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"an update":         "UPDATE {terms} SET fence = 0 WHERE role = 'scheduler'",
		"FOR UPDATE":        "SELECT FROM {terms} WHERE role = 'scheduler' FOR UPDATE",
		"FOR NO KEY UPDATE": "SELECT FROM {terms} WHERE role = 'scheduler' FOR NO KEY UPDATE",
		"FOR SHARE":         "SELECT FROM {terms} WHERE role = 'scheduler' FOR SHARE",
		"in a savepoint":    "SAVEPOINT s; UPDATE {terms} SET fence = 0 WHERE role = 'scheduler'",
		"released":          "SAVEPOINT s; SELECT FROM {terms} WHERE role = 'scheduler' FOR KEY SHARE; RELEASE s",
	} {
		t.Run(name, func(t *testing.T) {
			if name != "an update" && name != "released" {
				pgtest.Long(t)
			}
			t.Parallel()
			b := newBackend(t)
			first, second := open(t, b), open(t, b, fenceLater)
			led := first.take("scheduler")

			// There are several, some of which hold the row only after others have ended.
			user := applicationUser(t, b)
			ctx, cancel := context.WithCancel(context.Background())
			var held sync.WaitGroup
			defer held.Wait()
			defer cancel()
			for range 3 {
				conn := pgtest.Conn(t, pgtest.Shared(t).DSNFor(user, "postgres"))
				held.Go(func() { _, _ = conn.Exec(ctx, b.names.SQL("BEGIN; "+hold)) }) // some wait until they are terminated
			}
			eventually(t, b, `
				SELECT count(*) = 3
				FROM pg_locks l
				JOIN pg_stat_activity a USING (pid)
				WHERE a.usename = $1 AND l.relation = {terms:regclass} AND l.locktype = 'relation'`, user)

			first.Abort()
			if next := second.winFenced("scheduler", 0); next.Term <= led.Term {
				t.Errorf("the next term is %d, want a later one than %d", next.Term, led.Term)
			}
		})
	}
}

// applicationUser creates a user with only the privileges that fencing needs.
func applicationUser(t *testing.T, b *Backend) string {
	t.Helper()
	user := pgtest.Shared(t).Schema(t) // an unused name
	exec(t, b, "CREATE ROLE "+pgx.Identifier{user}.Sanitize()+" LOGIN")
	t.Cleanup(func() {
		exec(t, b, "DROP OWNED BY "+pgx.Identifier{user}.Sanitize()+"; DROP ROLE "+pgx.Identifier{user}.Sanitize())
	})
	exec(t, b, b.ApplicationGrants(user))
	return user
}

// The fence timeout continues across attempts that each end before it has
// passed.
// Set by hand: an application has the privilege for this update.
func TestFenceTimeoutCountsAcrossAttempts(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"the term is closed":     "SELECT FROM {terms} WHERE role = 'scheduler' FOR KEY SHARE",
		"the row cannot be read": "UPDATE {terms} SET fence = 0 WHERE role = 'scheduler'",
	} {
		t.Run(name, func(t *testing.T) {
			if name != "the term is closed" {
				pgtest.Long(t)
			}
			t.Parallel()
			b := newBackend(t)
			first := open(t, b)
			second := open(t, b, fenceLater)
			third := open(t, b, func(o *peerOptions) { o.timing.FenceTimeout = time.Hour })
			first.take("scheduler")
			holder := pgtest.Conn(t, b.connect.Config.ConnString())
			if _, err := holder.Exec(t.Context(), b.names.SQL("BEGIN; "+hold)); err != nil {
				t.Fatal(err)
			}
			first.Abort()
			var seen time.Time
			for start := time.Now(); ; {
				attempt := second.try("scheduler")[0]
				if seen.IsZero() && attempt.Fenced {
					seen = time.Now()
				}
				if attempt.Outcome == tenure.OutcomeGranted {
					break
				}
				second.wait(100 * time.Millisecond)
				if len(second.heldRoles) > 0 { // released, as after the lock timeout
					second.release("scheduler", history.EndResigned)
					third.try("scheduler") // another node tries between the attempts
					if len(third.heldRoles) > 0 {
						third.release("scheduler", history.EndResigned)
					}
				}
				if time.Since(start) > patience {
					t.Fatal("the transaction was never terminated")
				}
			}
			second.checkFenceTimeout(seen, 0)
			if second.blocked.Len() > 0 {
				t.Errorf("%v is still remembered as held", second.blocked)
			}
		})
	}
}
