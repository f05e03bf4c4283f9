package dialects

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/internal/together"
)

// begin begins a transaction, which ends when the test ends.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Changes in a caller's transaction commit or roll back with it.
func TestStoreInTransactionCommitsWithTheCaller(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			elections := newStore(t, k, db, time.Hour)
			if err := elections.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			a, b := uuid.New(), uuid.New()
			for _, commit := range []bool{false, true} {
				tx := begin(t, db)
				in := elections.In(tx)
				held, err := in.Elect(t.Context(), "n", a)
				if err != nil || held.Holder != a || held.Term < 1 {
					t.Fatalf("Elect: %+v, %v", held, err)
				}
				if leads, err := in.IsLeader(t.Context(), "n", a); err != nil || !leads {
					t.Errorf("IsLeader inside: %v, %v", leads, err)
				}
				if err := in.Register(t.Context(), "n", b); err != nil {
					t.Errorf("Register: %v", err)
				}
				if leads, err := elections.IsLeader(t.Context(), "n", a); err != nil || leads {
					t.Errorf("IsLeader outside: %v, %v", leads, err)
				}
				if !commit {
					err = tx.Rollback()
				} else {
					err = tx.Commit()
				}
				if err != nil {
					t.Fatal(err)
				}
				if leads, err := elections.IsLeader(t.Context(), "n", a); err != nil || leads != commit {
					t.Errorf("after the end: %v, %v; want %v", leads, err, commit)
				}
				if found, err := elections.Candidates(t.Context(), "n"); err != nil || (len(found) == 2) != commit {
					t.Errorf("the candidates are %v, %v", found, err)
				}
			}
		})
	}
}

// IsLeader in a transaction is a fence: until the transaction ends, no other candidate
// acquires the lease, even if it has expired.
func TestStoreFenceDelaysTheNextLeader(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			elections := newStore(t, k, db, 500*time.Millisecond)
			a, b := uuid.New(), uuid.New()
			if _, err := elections.Elect(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			// The window is short, so that the first answer may come too late.
			var tx *sql.Tx
			testkit.Await(t, "the leader fences a transaction", func() bool {
				if _, err := elections.Elect(t.Context(), "n", a); err != nil {
					t.Fatal(err)
				}
				tx = begin(t, db)
				if leads, err := elections.In(tx).IsLeader(t.Context(), "n", b); err != nil || leads {
					t.Fatalf("IsLeader of another: %v, %v", leads, err)
				}
				leads, err := elections.In(tx).IsLeader(t.Context(), "n", a)
				if err != nil {
					t.Fatal(err)
				}
				if !leads {
					_ = tx.Rollback()
				}
				return leads
			})
			var committed atomic.Bool
			won := make(chan error, 1)
			go func() {
				for {
					held, err := elections.Elect(t.Context(), "n", b)
					if err == nil && held.Holder != b {
						continue
					}
					if err == nil && !committed.Load() {
						err = errors.New("another candidate acquired the lease while the transaction was open")
					}
					won <- err
					return
				}
			}()
			testkit.Await(t, "the lease runs out", func() bool {
				leads, err := elections.IsLeader(t.Context(), "n", a)
				if err != nil {
					t.Fatal(err)
				}
				return !leads
			})
			select {
			case err := <-won:
				t.Fatal(err)
			case <-time.After(300 * time.Millisecond):
			}
			committed.Store(true)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-won; err != nil {
				t.Error(err)
			}
		})
	}
}

// While a fenced transaction is open, even the leader itself cannot release the lease.
func TestStoreFenceKeepsTheLeader(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			elections := newStore(t, k, db, time.Hour)
			a := uuid.New()
			if _, err := elections.Elect(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			tx := begin(t, db)
			if leads, err := elections.In(tx).IsLeader(t.Context(), "n", a); err != nil || !leads {
				t.Fatalf("IsLeader: %v, %v", leads, err)
			}
			left := make(chan error, 1)
			go func() { left <- elections.Unregister(t.Context(), "n", a) }()
			select {
			case err := <-left:
				t.Fatalf("the leader released a fenced lease: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-left; err != nil {
				t.Error(err)
			}
		})
	}
}

// If another transaction locks the row until the deadline, the error matches ErrBusy.
func TestStoreLockedRowIsBusy(t *testing.T) {
	t.Parallel()
	waiting := together.New(t)
	defer waiting.Wait()
	for _, k := range kinds {
		waiting.Run(k.name, func(t *testing.T) {
			db := k.open(t)
			elections := newStore(t, k, db, time.Hour)
			a := uuid.New()
			if _, err := elections.Elect(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			tx := begin(t, db)
			if _, err := elections.In(tx).Elect(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a busy machine needs some of it before
			defer cancel()
			if _, err := elections.Elect(ctx, "n", a); !errors.Is(err, dberr.ErrBusy) {
				t.Errorf("%v; want ErrBusy", err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if _, err := elections.Elect(t.Context(), "n", a); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// The error says what to do.
func TestStoreInTransactionMigratesNothing(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			elections := newStore(t, k, db, time.Hour)
			in := elections.In(begin(t, db))
			_, err := in.Elect(t.Context(), "n", uuid.New())
			if !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "Migrate") {
				t.Errorf("%v; want ErrSchema, naming Migrate", err)
			}
			if _, err := in.IsLeader(t.Context(), "n", uuid.New()); !errors.Is(err, dberr.ErrSchema) {
				t.Errorf("IsLeader: %v; want ErrSchema", err)
			}
			if err := in.Migrate(t.Context()); !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Errorf("Migrate: %v; want it refused", err)
			}
		})
	}
}

// With a snapshot from before the change of the leader, the old leader must not appear to
// lead.
func TestStoreOldSnapshotDoesNotHideTheNewLeader(t *testing.T) {
	t.Parallel()
	for _, k := range direct {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			elections := newStore(t, k, db, time.Hour)
			a, b := uuid.New(), uuid.New()
			if _, err := elections.Elect(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			level := sql.LevelRepeatableRead
			if k.name == "SQLite" {
				level = sql.LevelDefault
			}
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			var n int
			if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM tenure_election_leader").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if err := elections.Unregister(t.Context(), "n", a); err != nil {
				t.Fatal(err)
			}
			if held, err := elections.Elect(t.Context(), "n", b); err != nil || held.Holder != b {
				t.Fatalf("Elect: %+v, %v", held, err)
			}
			if leads, err := elections.In(tx).IsLeader(t.Context(), "n", a); leads || err != nil && !errors.Is(err, dberr.ErrBusy) {
				t.Errorf("IsLeader: %v, %v; want false, or ErrBusy", leads, err)
			}
			if held, err := elections.In(tx).Elect(t.Context(), "n", a); held.Holder == a {
				t.Errorf("Elect: %+v, %v; %s leads", held, err, b)
			}
		})
	}
}
