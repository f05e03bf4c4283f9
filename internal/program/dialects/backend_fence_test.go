package dialects

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/tenuretest"
)

// isolation is a way to begin a transaction.
type isolation struct {
	name    string
	options *sql.TxOptions
	suffix  string // of the data source
}

// isolations returns the ways to begin a transaction on a kind of database.
func isolations(k kind) []isolation {
	if k.dialect == lease.SQLite {
		return []isolation{{"deferred", nil, ""}, {"immediate", nil, "&_txlock=immediate"}}
	}
	levels := []isolation{{"default", nil, ""}}
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		levels = append(levels, isolation{level.String(), &sql.TxOptions{Isolation: level}, ""})
	}
	return levels
}

// onIsolations runs a test on kinds of databases at every isolation level.
func onIsolations(t *testing.T, kinds []kind, test func(t *testing.T, f *fenceTest)) {
	t.Helper()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		for _, level := range isolations(k) {
			t.Run(level.name, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, k)
				c.config.Lease = 2 * time.Second
				f := &fenceTest{cluster: c, level: level, db: k.connect(t, c.source+level.suffix)}
				execute(t, f.db, "CREATE TABLE ledger (term bigint)")
				f.leader = c.join("leader")
				f.term = leads(t, f.leader.campaign(backendRole))
				f.standby = c.join("standby").campaign(backendRole)
				test(t, f)
			})
		}
	})
}

// fenceTest has a leader that can be cut off and a standby.
type fenceTest struct {
	*cluster
	level   isolation
	db      *sql.DB // of the program whose transactions are fenced
	leader  *member
	term    *tenure.Term
	standby *tenure.Election
}

// vanish cuts the leader off from the database.
func (f *fenceTest) vanish() {
	f.t.Helper()
	if err := f.leader.db.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// While a fenced transaction is open, the next term does not begin. The transaction
// commits.
func TestBackendFenceDelaysTheNextTerm(t *testing.T) {
	t.Parallel()
	onIsolations(t, kinds, func(t *testing.T, f *fenceTest) {
		ctx := soon(t)
		tx, err := f.db.BeginTx(ctx, f.level.options)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO ledger (term) VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if err := lease.Fence(ctx, tx, f.term); err != nil {
			t.Fatal(err)
		}
		f.vanish()
		limited, cancel := context.WithTimeout(ctx, f.config.Lease+time.Second)
		defer cancel()
		if next, err := f.standby.WaitForLeadership(limited); err == nil {
			t.Fatalf("Invariant 3: term %d began while a fenced transaction of term %d was open", next.Number(), f.term.Number())
		}
		if err := tx.Commit(); err != nil {
			t.Fatalf("committing a fenced transaction: %v", err)
		}
		if next := leads(t, f.standby); next.Number() <= f.term.Number() {
			t.Errorf("term %d follows term %d", next.Number(), f.term.Number())
		}
		if rows := value(t, f.db, "SELECT count(*) FROM ledger"); rows != "1" {
			t.Errorf("%s rows were committed; want 1", rows)
		}
	})
}

// A transaction that began under a term does not commit after the next term has begun, even
// if its snapshot is older.
func TestBackendFenceRejectsOldTermInOldSnapshot(t *testing.T) {
	t.Parallel()
	onIsolations(t, kinds, func(t *testing.T, f *fenceTest) {
		if f.level.suffix == "" { // else no next term can begin before it ends
			f.checkOldSnapshot(t)
		} else {
			f.vanish()
			leads(t, f.standby)
		}
		tx, err := f.db.BeginTx(t.Context(), f.level.options)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := lease.Fence(t.Context(), tx, f.term); !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("Invariant 3: a transaction after the next term began: %v; want ErrFenced", err)
		}
	})
}

// A fence waits for another writer as long as its connection waits, also as the first
// statement of a transaction that has not locked the file: SQLite never waits once such a
// transaction has read.
func TestBackendFenceWaitsForAnotherWriter(t *testing.T) {
	t.Parallel()
	onIsolations(t, []kind{sqliteKind}, func(t *testing.T, f *fenceTest) {
		ctx := soon(t)
		writer := f.db
		if f.level.suffix == "" {
			writer = sqliteKind.connect(t, f.source+"&_txlock=immediate")
		}
		writing, err := writer.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		time.AfterFunc(300*time.Millisecond, func() { ended <- writing.Commit() })
		if err := lease.InTx(ctx, f.db, f.level.options, f.term, func(*sql.Tx) error { return nil }); err != nil {
			t.Errorf("while another transaction wrote, the fence ended with %v; want it to wait", err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

// checkOldSnapshot begins the next term in the middle of a transaction.
func (f *fenceTest) checkOldSnapshot(t *testing.T) {
	t.Helper()
	err := lease.InTx(soon(t), f.db, f.level.options, f.term, func(tx *sql.Tx) error {
		var rows int
		// The snapshot, where there is one for the whole transaction.
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM tenure_lease_seats").Scan(&rows); err != nil {
			return err
		}
		f.vanish()
		leads(t, f.standby)
		if f.kind.dialect == lease.SQLite {
			return nil // a statement that writes would fail in place of the fence
		}
		_, err := tx.ExecContext(t.Context(), "INSERT INTO ledger (term) VALUES (1)")
		return err
	})
	switch {
	case errors.Is(err, tenure.ErrFenced):
	case f.kind.dialect == lease.SQLite && errors.Is(err, dberr.ErrBusy):
		// SQLite refuses to write at all after an old snapshot.
	default:
		t.Errorf("Invariant 3: the transaction ended with %v; want ErrFenced", err)
	}
	if rows := value(t, f.db, "SELECT count(*) FROM ledger"); rows != "0" {
		t.Errorf("Invariant 3: %s rows of the old term were committed", rows)
	}
}

// servers lists the kinds of databases that lock single rows.
var servers = []kind{kinds[0], kinds[1], kinds[3]}

// An endless series of overlapping fenced transactions does not prevent the next term. On
// SQLite transactions do not overlap.
func TestBackendOverlappingFencesDelayTheNextTermOnlyBriefly(t *testing.T) {
	t.Parallel()
	onIsolations(t, servers, func(t *testing.T, f *fenceTest) {
		const writers = 4
		ctx := soon(t)
		var (
			group  sync.WaitGroup
			fenced = make(chan error, writers)
		)
		for range writers {
			group.Go(func() {
				for {
					if err := f.holdFence(ctx); err != nil {
						fenced <- err
						return
					}
				}
			})
		}
		f.vanish()
		begun := time.Now()
		next := leads(t, f.standby)
		t.Logf("%s, %s: the next term began %v after the leader vanished, with a lease of %v",
			f.kind.name, f.level.name, time.Since(begun), f.config.Lease)
		group.Wait()
		for range writers {
			if err := <-fenced; !errors.Is(err, tenure.ErrFenced) {
				t.Errorf("a transaction ended with %v; want ErrFenced", err)
			}
		}
		if next.Number() <= f.term.Number() {
			t.Errorf("term %d follows term %d", next.Number(), f.term.Number())
		}
	})
}

// A fenced transaction keeps the next term waiting, so the end of the old term is recorded
// before the new one can begin. The new one settles nevertheless.
func TestBackendTermSettlesAfterFencedTransaction(t *testing.T) {
	t.Parallel()
	onKinds(t, servers, func(t *testing.T, k kind) {
		const settle = time.Hour
		source := k.source(t)
		db := k.connect(t, source)
		leader := opensWith(t, newBackend(t, db, k.dialect, lease.Config{}), "leader",
			tenure.Timing{Lease: 2 * time.Second, RefreshInterval: time.Second})
		if attempt := mustTry(t, leader, tenure.AcquireRequest{Role: tenure.NamedRole("r")})[0]; attempt.Outcome != tenure.OutcomeGranted {
			t.Fatalf("a free role: %+v; want it granted", attempt)
		}
		next := opensWith(t, newBackend(t, k.connect(t, source), k.dialect, lease.Config{}), "next",
			tenure.Timing{Lease: takersLease, RefreshInterval: takersLease / 3, FenceTimeout: patience, Settle: settle})
		try := func() tenure.AcquireResult {
			return mustTry(t, next, tenure.AcquireRequest{Role: tenure.NamedRole("r")})[0]
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		lock := map[lease.Dialect]string{lease.PostgreSQL: "FOR KEY SHARE", lease.MySQL: "LOCK IN SHARE MODE"}[k.dialect]
		if _, err := tx.ExecContext(t.Context(), "SELECT role FROM tenure_lease_seats WHERE role = 'r' "+lock); err != nil {
			t.Fatal(err)
		}
		attempt := try()
		testkit.Await(t, "the lease expires", func() bool {
			attempt = try()
			return attempt.Outcome != tenure.OutcomeHeld
		})
		if attempt.Outcome != tenure.OutcomePending || !attempt.Fenced {
			t.Fatalf("while the transaction is open: %+v; want it to wait for the transaction", attempt)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "the end of the old term is recorded", func() bool {
			return value(t, db, "SELECT ended_at FROM tenure_lease_seats WHERE role = 'r'") != "NULL"
		})
		if attempt = try(); attempt.Outcome != tenure.OutcomePending || attempt.RetryIn < settle/2 {
			t.Errorf("after the transaction: %+v; want it to settle for %v", attempt, settle)
		}
	})
}

// holdFence keeps a fenced transaction open for a while and commits it.
func (f *fenceTest) holdFence(ctx context.Context) error {
	tx, err := f.db.BeginTx(ctx, f.level.options)
	if err == nil {
		defer tx.Rollback()
		err = lease.Fence(ctx, tx, f.term)
	}
	if err != nil {
		return err
	}
	<-time.After(50 * time.Millisecond)
	return tx.Commit()
}

// A transaction with several terms fails if one of them has ended.
func TestBackendFencesSeveralTerms(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		a := c.join("a")
		second, first := a.campaign("b"), a.campaign("a")
		terms := []*tenure.Term{leads(t, second), leads(t, first)}
		db := k.connect(t, c.source)
		fence := func(terms ...*tenure.Term) error {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			return lease.Fence(t.Context(), tx, terms...)
		}
		if err := fence(terms...); err != nil {
			t.Errorf("two valid terms: %v", err)
		}
		if err := first.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := fence(terms...); !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("one of two terms has ended: %v; want ErrFenced", err)
		}
		if err := fence(terms[0]); err != nil {
			t.Errorf("the valid term: %v", err)
		}
		work := func(*sql.Tx) error { t.Error("work was done under a term that has ended"); return nil }
		if err := lease.InTx(t.Context(), db, nil, terms[1], work); !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("a transaction under a term that has ended: %v; want ErrFenced", err)
		}
		failure := errors.New("the work failed")
		if err := lease.InTx(t.Context(), db, nil, terms[0], func(*sql.Tx) error { return failure }); !errors.Is(err, failure) {
			t.Errorf("work that failed: %v", err)
		}
	})
}

func TestBackendFenceRejectsTermsOfOtherBackends(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		own := leads(t, c.join("a").campaign("own"))
		other := newCluster(t, k)
		others := leads(t, other.join("a").campaign("another's"))
		memory, err := tenure.Open(soon(t), tenuretest.NewDatabase(), c.config)
		if err != nil {
			t.Fatal(err)
		}
		defer memory.Close(soon(t))
		strange := leads(t, (&member{Node: memory, t: t}).campaign("strange"))
		empty := k.open(t)
		for _, test := range []struct {
			what  string
			db    *sql.DB
			terms []*tenure.Term
			want  error
		}{
			{"no term", empty, nil, tenure.ErrInvalidConfig},
			{"another backend", empty, []*tenure.Term{strange}, tenure.ErrInvalidConfig},
			{"two databases", empty, []*tenure.Term{own, others}, tenure.ErrInvalidConfig},
			{"a database without the tables", empty, []*tenure.Term{own}, dberr.ErrSchema},
			{"another database", k.connect(t, other.source), []*tenure.Term{own}, tenure.ErrFenced},
		} {
			tx, err := test.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Fence(t.Context(), tx, test.terms...); !errors.Is(err, test.want) {
				t.Errorf("%s: %v; want %v", test.what, err, test.want)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
