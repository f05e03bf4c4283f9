package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// work is a table that fenced transactions write to.
func work(t testing.TB, b *Backend) *pgxpool.Pool {
	t.Helper()
	if err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, b, `CREATE TABLE {schema}.work (term bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`)
	return pgtest.Pool(t, b.connect.Config.ConnString())
}

func (p *peer) mark(role string) []termRef { return []termRef{{role, p.heldRoles[role].term, p.id}} }

// write is one fenced transaction of a peer's term.
func (p *peer) write(pool *pgxpool.Pool, options pgx.TxOptions, marks []termRef, middle func(pgx.Tx)) error {
	return p.backend.inTx(context.Background(), pool, options, marks, func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), p.backend.names.SQL("INSERT INTO {schema}.work (term) VALUES ($1)"), marks[0].term)
		if middle != nil {
			middle(tx)
		}
		return err
	})
}

func TestFencedTransactionCommitsDuringItsTermOnly(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			pool := work(t, b)
			first, second := open(t, b), open(t, b)
			first.take("scheduler")
			marks, options := first.mark("scheduler"), pgx.TxOptions{IsoLevel: level}
			if err := first.write(pool, options, marks, nil); err != nil {
				t.Fatalf("during the term: %v", err)
			}

			// The term ends, and the next begins, after the transaction took its
			// snapshot.
			err := first.write(pool, options, marks, func(pgx.Tx) {
				first.Abort()
				second.win("scheduler")
			})
			if !errors.Is(err, tenure.ErrFenced) {
				t.Errorf("a transaction that outlived its term: %v; want it fenced", err)
			}
			if err := first.write(pool, options, marks, nil); !errors.Is(err, tenure.ErrFenced) {
				t.Errorf("a transaction after its term: %v; want it fenced", err)
			}
			if n := row[int](t, b, "SELECT count(*) FROM {schema}.work"); n != 1 {
				t.Errorf("%d writes of the first term were committed, want 1", n)
			}
			if fenced := b.Stats().Fenced; fenced != 2 {
				t.Errorf("%d fenced transactions were counted, want 2", fenced)
			}
		})
	}
}

// After the end of a term, its transactions are fenced before the next term begins: it can
// be long until then. A snapshot from before the end does not show it, so this is about
// READ COMMITTED, the default.
func TestTransactionIsFencedBetweenTerms(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first := open(t, b)
	first.take("scheduler")
	err := first.write(pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, first.mark("scheduler"), func(pgx.Tx) {
		first.release("scheduler", history.EndResigned)
	})
	if !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a transaction whose term has ended: %v; want it fenced", err)
	}
	if n := row[int](t, b, "SELECT count(*) FROM {schema}.work"); n != 0 {
		t.Errorf("%d writes were committed after their term, want none", n)
	}
}

func TestNextTermWaitsForFencedTransaction(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first, second := open(t, b), open(t, b)
	led, other := first.take("scheduler"), first.take("other")
	second.try("scheduler", "other")

	ctx := context.Background()
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	marks := first.mark("scheduler")
	if err := b.fence(ctx, tx, marks); err != nil {
		t.Fatal(err)
	}
	first.beat() // a fenced transaction does not delay heartbeats
	first.Abort()
	if next := second.win("other"); next.Previous != other.Term { // nor of other roles
		t.Errorf("the other role has term %d after %d, want it after %d", next.Term, next.Previous, other.Term)
	}
	for range 3 {
		attempt := second.try("scheduler")[0]
		if attempt.Outcome != tenure.OutcomePending || !attempt.Fenced || attempt.RetryIn <= 0 {
			t.Fatalf("outcome %d, %+v; want it waiting for the transaction", attempt.Outcome, attempt)
		}
	}
	// The old term is closed while its transaction still holds off the next one, so
	// that no other transaction of the old term can take the place of this one.
	if err := first.write(pool, pgx.TxOptions{}, marks, nil); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("a later transaction of the term that was closed: %v; want it fenced", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatalf("the fenced transaction: %v", err)
	}
	if next := second.take("scheduler"); next.Previous != led.Term {
		t.Errorf("the next term is %d after %d, want it after %d", next.Term, next.Previous, led.Term)
	}
}

// Without the commit that closes the old term, overlapping transactions would
// delay the new term forever.
func TestOverlappingFencedTransactionsDoNotBlockNextTerm(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first, second := open(t, b), open(t, b, func(o *peerOptions) {
		o.timing.LockTimeout, o.timing.FenceTimeout = 2*patience, 2*patience // nothing ends the transactions
	})
	first.take("scheduler")
	second.refused("scheduler")
	marks := first.mark("scheduler")

	// Each keeps its fence for a while, as callers that manage their own
	// transactions might, so that at least one is always in effect.
	transaction := func() error {
		ctx := context.Background()
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, b.names.SQL("INSERT INTO {schema}.work (term) VALUES (1)")); err != nil {
				return err
			}
			if err := b.fence(ctx, tx, marks); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "SELECT pg_sleep(0.03)")
			return err
		})
	}
	var workers sync.WaitGroup
	stop := make(chan struct{})
	ready := make(chan struct{}, 4)
	for range 4 {
		workers.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := transaction(); err != nil && !errors.Is(err, tenure.ErrFenced) {
					t.Errorf("worker: %v", err)
					return
				}
				if round == 3 {
					ready <- struct{}{}
				}
			}
		})
	}
	defer workers.Wait()
	defer close(stop)
	for range 4 {
		<-ready
	}

	first.Abort()
	var locked time.Time
	for deadline := time.Now().Add(patience); ; {
		attempt := second.try("scheduler")[0]
		if attempt.Outcome != tenure.OutcomeHeld && locked.IsZero() {
			locked = time.Now()
		}
		if attempt.Outcome == tenure.OutcomeGranted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the next term never began")
		}
		second.wait(max(attempt.RetryIn, time.Millisecond))
	}
	t.Logf("the next term began %v after the lock was taken", time.Since(locked))
	late := row[int](t, b, "SELECT count(*) FROM {schema}.work w JOIN {terms} t ON w.term < t.term AND w.at > t.acquired_at")
	if late > 0 { // Invariant 3.
		t.Errorf("%d writes of the old term were made after the new one began", late)
	}
}

func TestInTxFencesAfterRolledBackSavepoint(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	ctx := context.Background()
	held := make(chan struct{})
	proceed := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- first.write(pool, pgx.TxOptions{}, first.mark("scheduler"), func(tx pgx.Tx) {
			// A fence within the function is lost with the savepoint; the one of
			// InTx comes after it.
			inner, err := tx.Begin(ctx)
			if err == nil {
				err = errors.Join(b.fence(ctx, inner, first.mark("scheduler")), inner.Rollback(ctx))
			}
			if err != nil {
				t.Error(err)
			}
			close(held)
			<-proceed
		})
	}()
	<-held
	first.network.Close()
	second.win("scheduler")
	close(proceed)
	if err := <-done; !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("%v; want it fenced", err)
	}
}

// A function that ends its transaction, or fails, gets an error. Nothing is
// committed without the fence, unless the function sends COMMIT as a statement.
func TestInTxCommitsOnlyItself(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	p := open(t, b)
	p.take("scheduler")
	ctx := context.Background()
	for name, end := range map[string]func(tx pgx.Tx) error{
		"commit":           func(tx pgx.Tx) error { return tx.Commit(ctx) },
		"rollback":         func(tx pgx.Tx) error { return tx.Rollback(ctx) },
		"statement COMMIT": func(tx pgx.Tx) error { _, err := tx.Exec(ctx, "COMMIT"); return err },
		"failed statement": func(tx pgx.Tx) error { _, _ = tx.Exec(ctx, "SELECT 1/0"); return nil },
		"error":            func(pgx.Tx) error { return errors.New("no") },
	} {
		err := b.inTx(ctx, pool, pgx.TxOptions{}, p.mark("scheduler"), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, b.names.SQL("INSERT INTO {schema}.work (term) VALUES (1)")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return end(tx)
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if rows := row[int](t, b, "SELECT count(*) FROM {schema}.work"); rows > 0 && name != "statement COMMIT" {
			t.Errorf("Invariant 3: %s: %d rows were committed without the fence", name, rows)
		}
		exec(t, b, "TRUNCATE {schema}.work")
	}
}

func TestFenceWorksWithDatabaseSQL(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	work(t, b)
	db, err := sql.Open("pgx", b.connect.Config.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	first.take("archive")
	both := append(first.mark("scheduler"), first.mark("archive")...)
	insert := func(tx *sql.Tx) error {
		_, err := tx.Exec(b.names.SQL("INSERT INTO {schema}.work (term) VALUES (1)"))
		return err
	}
	ctx := context.Background()
	if err := b.inSQLTx(ctx, db, nil, both, insert); err != nil {
		t.Fatalf("while both terms stand: %v", err)
	}
	first.release("archive", history.EndResigned)
	err = b.inSQLTx(ctx, db, nil, both, insert)
	if !errors.Is(err, tenure.ErrFenced) || !strings.Contains(err.Error(), "archive") {
		t.Errorf("when one has ended: %v; want it fenced, and archive named", err)
	}
	err = b.inSQLTx(ctx, db, &sql.TxOptions{Isolation: sql.LevelRepeatableRead}, first.mark("scheduler"), func(tx *sql.Tx) error {
		err := insert(tx)
		first.Abort()
		second.win("scheduler")
		return err
	})
	if !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("in REPEATABLE READ: %v; want it fenced", err)
	}
	if n := row[int](t, b, "SELECT count(*) FROM {schema}.work"); n != 1 {
		t.Errorf("%d transactions were committed, want 1", n)
	}
}

// termOfNode is a term of the engine.
func termOfNode(ctx context.Context, t *testing.T, b *Backend) *tenure.Term {
	t.Helper()
	node, err := tenure.Open(ctx, b, tenure.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close(context.WithoutCancel(ctx)) })
	election, err := node.Election(tenure.NamedRole("scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func TestInTxFencesWithTermOfNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	term := termOfNode(ctx, t, b)
	insert := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, b.names.SQL("INSERT INTO {schema}.work (term) VALUES ($1)"), term.Number())
		return err
	}
	repeatable := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
	if err := errors.Join(InTx(ctx, pool, term, insert), InTxOptions(ctx, pool, repeatable, term, insert)); err != nil {
		t.Errorf("during the term: %v", err)
	}
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if err := Fence(ctx, tx, term); err != nil {
		t.Errorf("fence: %v", err)
	}
	tx.Rollback(ctx)
	if err := term.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	if err := InTx(ctx, pool, term, insert); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("after its end: %v; want it fenced", err)
	}
	if err := InTxOptions(ctx, pool, repeatable, term, insert); !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("with options, after its end: %v; want it fenced", err)
	}
	if fenced := b.Stats().Fenced; fenced != 2 {
		t.Errorf("%d fenced transactions were counted, want 2", fenced)
	}
}

func TestInSQLTxFencesWithTermOfNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	work(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	db, err := sql.Open("pgx", b.connect.Config.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	term := termOfNode(ctx, t, b)
	insert := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, b.names.SQL("INSERT INTO {schema}.work (term) VALUES ($1)"), term.Number())
		return err
	}
	fence := func() error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return errors.Join(insert(tx), FenceSQL(ctx, tx, term))
	}
	if err := errors.Join(InSQLTx(ctx, db, nil, term, insert), fence()); err != nil {
		t.Errorf("during the term: %v", err)
	}
	if err := term.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"InSQLTx": InSQLTx(ctx, db, nil, term, insert), "FenceSQL": fence()} {
		if !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("%s after the end of the term: %v; want it fenced", name, err)
		}
	}
	if n := row[int](t, b, "SELECT count(*) FROM {schema}.work"); n != 1 {
		t.Errorf("%d transactions were committed, want 1", n)
	}
}
