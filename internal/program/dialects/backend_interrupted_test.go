package dialects

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/store"
)

// interrupt opens a pool of one connection. A stored function is called once, after a
// statement with this beginning was run. If it returns an error, the answer is lost.
func (k kind) interrupt(t *testing.T, source, statement string) (*sql.DB, *atomic.Pointer[func() error]) {
	t.Helper()
	after := &atomic.Pointer[func() error]{}
	db := sql.OpenDB(tapped{driver: k.connect(t, source).Driver(), source: source, ran: func(ran string) error {
		if !strings.HasPrefix(ran, statement) {
			return nil
		}
		if call := after.Swap(nil); call != nil {
			return (*call)()
		}
		return nil
	}})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, after
}

// A lost answer leaves nothing behind on its connection: neither a transaction, which would
// lock the file until the process ends, nor the time limits of the call. An in-memory
// database survives with its only connection.
func TestBackendLostAnswersLeaveCleanConnections(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"BEGIN IMMEDIATE", "COMMIT", "PRAGMA busy_timeout = 10"} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			source := sqlite(t)
			db, after := sqliteKind.interrupt(t, source, statement)
			loseAnswer(t, db, after)
			mustBeFree(t, source)
		})
		t.Run(statement+" in memory", func(t *testing.T) {
			t.Parallel()
			db, after := sqliteKind.interrupt(t, "file::memory:?_pragma=busy_timeout(10000)", statement)
			loseAnswer(t, db, after)
			if candidates := value(t, db, "SELECT count(*) FROM tenure_election_candidate"); candidates < "2" {
				t.Errorf("there are %s candidates; want those of before, too", candidates)
			}
		})
	}
}

func loseAnswer(t *testing.T, db *sql.DB, after *atomic.Pointer[func() error]) {
	t.Helper()
	elections, err := store.New(db, lease.SQLite, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := elections.Register(soon(t), "a", uuid.New()); err != nil {
		t.Fatal(err)
	}
	// So says the driver itself where a context ends in the very moment.
	late := func() error { return context.DeadlineExceeded }
	after.Store(&late)
	if err := elections.Register(soon(t), "a", uuid.New()); !errors.Is(err, tenure.ErrConnection) {
		t.Errorf("a call whose answer was lost: %v; want ErrConnection", err)
	}
	if err := elections.Register(soon(t), "a", uuid.New()); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if patience := value(t, db, "PRAGMA busy_timeout"); patience != "10000" {
		t.Errorf("the connection waits %s ms for a lock; want the pool's 10000", patience)
	}
}

// After a migration that was canceled between two statements or lost an answer, the next
// one can run.
func TestStoreCanceledMigrationReleasesItsLock(t *testing.T) {
	t.Parallel()
	mariaDB := kinds[3]
	for name, lost := range map[string]error{"between statements": nil, "with an answer": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, after := mariaDB.interrupt(t, mariaDB.source(t), "SET SESSION lock_wait_timeout")
			elections, err := store.New(db, lease.MySQL, store.Config{})
			if err != nil {
				t.Fatal(err)
			}
			before := value(t, db, "SELECT @@lock_wait_timeout")
			ctx, giveUp := context.WithTimeout(t.Context(), patience)
			defer giveUp()
			call := func() error { giveUp(); return lost }
			after.Store(&call)
			if err := elections.Migrate(ctx); !errors.Is(err, tenure.ErrConnection) {
				t.Errorf("a canceled migration: %v; want ErrConnection", err)
			}
			if own := value(t, db, "SELECT COALESCE(IS_USED_LOCK('tenure migrates tenure_') = CONNECTION_ID(), 0)"); own != "0" {
				t.Error("a connection in the pool has kept the lock of migrations")
			}
			if now := value(t, db, "SELECT @@lock_wait_timeout"); now != before {
				t.Errorf("a connection in the pool waits %s s for locks; want the %s of before", now, before)
			}
		})
	}
}

// A transaction that is canceled before it begins does not change the isolation level of
// the next one on its connection.
func TestBackendCanceledBeginKeepsIsolation(t *testing.T) {
	t.Parallel()
	mariaDB := kinds[3]
	source := mariaDB.source(t)
	db, after := mariaDB.interrupt(t, source, "SET TRANSACTION ISOLATION LEVEL")
	backend := newBackend(t, db, lease.MySQL, lease.Config{})
	if err := backend.Migrate(soon(t)); err != nil {
		t.Fatal(err)
	}
	other := mariaDB.connect(t, source)
	execute(t, other, "CREATE TABLE ledger (term bigint)")
	ctx, giveUp := context.WithTimeout(t.Context(), patience)
	defer giveUp()
	call := func() error { giveUp(); return nil }
	after.Store(&call)
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: backendRole}
	if err := backend.Request(ctx, request); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled request: %v; want context.Canceled", err)
	}
	tx, err := db.BeginTx(soon(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	count := func() (rows string) {
		if err := tx.QueryRowContext(soon(t), "SELECT count(*) FROM ledger").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := count()
	execute(t, other, "INSERT INTO ledger (term) VALUES (1)")
	if now := count(); now != before {
		t.Error("the next transaction on the connection reads concurrent commits")
	}
}

// mustBeFree acquires the lock of a file without waiting.
func mustBeFree(t *testing.T, source string) {
	t.Helper()
	db := sqliteKind.connect(t, source)
	db.SetMaxOpenConns(1)
	execute(t, db, "PRAGMA busy_timeout = 0", "BEGIN IMMEDIATE", "ROLLBACK")
}

// No call leaves the file locked, wherever its deadline interrupts it.
func TestBackendShortDeadlinesLeaveFileUnlocked(t *testing.T) {
	t.Parallel()
	source := sqlite(t)
	db := sqliteKind.connect(t, source)
	elections, err := store.New(db, lease.SQLite, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := elections.Register(soon(t), "a", uuid.New()); err != nil {
		t.Fatal(err)
	}
	var (
		callers     sync.WaitGroup
		late, known atomic.Int64
	)
	for range 4 {
		callers.Go(func() {
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20_000))*time.Microsecond)
				if err := elections.Register(ctx, "a", uuid.New()); err != nil {
					late.Add(1)
				} else {
					known.Add(1)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	mustBeFree(t, source)
	t.Logf("%d calls came too late, %d were answered", late.Load(), known.Load())
	if late.Load() == 0 || known.Load() == 0 {
		t.Error("no call came too late, or every one")
	}
}
