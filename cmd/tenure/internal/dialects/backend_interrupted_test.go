package dialects

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease"
)

// interrupted is SQLite's driver, which loses the answer to one statement: it is
// run, but what is reported is that the time is over. The driver itself does that
// where a context ends in the very moment.
type interrupted struct {
	driver driver.Driver
	source string
	lose   atomic.Pointer[string] // the next statement whose answer is lost
}

func (i *interrupted) Driver() driver.Driver { return i.driver }

func (i *interrupted) Connect(context.Context) (driver.Conn, error) {
	conn, err := i.driver.Open(i.source)
	return interruptedConn{conn, i}, err
}

type interruptedConn struct {
	driver.Conn
	from *interrupted
}

func (c interruptedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c interruptedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if lose := c.from.lose.Load(); err == nil && lose != nil && query == *lose && c.from.lose.CompareAndSwap(lose, nil) {
		return nil, context.DeadlineExceeded
	}
	return result, err
}

// oneConnection opens a pool of one connection that can be interrupted.
func oneConnection(t *testing.T, source string) (*sql.DB, *interrupted) {
	t.Helper()
	i := &interrupted{driver: sqliteKind.connect(t, source).Driver(), source: source}
	db := sql.OpenDB(i)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, i
}

// A statement whose answer is lost leaves nothing behind on its connection: no
// transaction, which would keep everybody out of the file for as long as the
// process lives, and not the short patience of a call. A database in memory is
// not lost with its only connection.
func TestBackendLostAnswers(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"BEGIN IMMEDIATE", "COMMIT", "PRAGMA busy_timeout = 10"} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			source := sqlite(t)
			db, driver := oneConnection(t, source)
			loseAnswer(t, db, driver, statement)
			mustBeFree(t, source)
		})
		t.Run(statement+" in memory", func(t *testing.T) {
			t.Parallel()
			db, driver := oneConnection(t, "file::memory:?_pragma=busy_timeout(10000)")
			loseAnswer(t, db, driver, statement)
			if candidates := value(t, db, "SELECT count(*) FROM gemstone_election_candidate"); candidates < "2" {
				t.Errorf("there are %s candidates; want those of before, too", candidates)
			}
		})
	}
}

func loseAnswer(t *testing.T, db *sql.DB, driver *interrupted, statement string) {
	t.Helper()
	store, err := lease.NewStore(db, lease.SQLite, lease.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Register(soon(t), "a", uuid.New()); err != nil {
		t.Fatal(err)
	}
	driver.lose.Store(&statement)
	if err := store.Register(soon(t), "a", uuid.New()); !errors.Is(err, tenure.ErrConnection) {
		t.Errorf("a call whose answer was lost: %v; want ErrConnection", err)
	}
	if err := store.Register(soon(t), "a", uuid.New()); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if patience := value(t, db, "PRAGMA busy_timeout"); patience != "10000" {
		t.Errorf("the connection waits %s ms for a lock; want the pool's 10000", patience)
	}
}

// mustBeFree asks for the lock of a file, without waiting for it.
func mustBeFree(t *testing.T, source string) {
	t.Helper()
	db := sqliteKind.connect(t, source)
	db.SetMaxOpenConns(1)
	execute(t, db, "PRAGMA busy_timeout = 0", "BEGIN IMMEDIATE", "ROLLBACK")
}

// However short the time is that calls are given, and wherever it ends, none
// leaves the file locked.
func TestBackendShortDeadlines(t *testing.T) {
	t.Parallel()
	source := sqlite(t)
	db := sqliteKind.connect(t, source)
	store, err := lease.NewStore(db, lease.SQLite, lease.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Register(soon(t), "a", uuid.New()); err != nil {
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
				if err := store.Register(ctx, "a", uuid.New()); err != nil {
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
