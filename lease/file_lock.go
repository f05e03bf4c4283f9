package lease

import (
	"context"
	"database/sql"
	"time"
)

// lockPatience is how long SQLite itself waits for the lock of its file.
const lockPatience = 10 * time.Millisecond

// whileLocked runs do again for as long as SQLite finds its file locked and the
// context lives. SQLite's own waiting would do for neither: it looks less and
// less often, at last ten times a second, so that a few programs that write
// without a pause can keep it out for ever, and a context does not interrupt it.
func (d Dialect) whileLocked(ctx context.Context, do func() error) error {
	var locked error
	for {
		err := do()
		switch {
		case d == SQLite && d.failureOf(err) == failureBusy:
			locked = err
		case locked != nil && ctx.Err() != nil:
			return locked // says more than that the time is over
		default:
			return err
		}
		if ctx.Err() != nil {
			return locked
		}
	}
}

// immediately runs fn in a transaction that locks the file for writing before it
// reads: one that begins by reading cannot wait for another when it must write.
func immediately(ctx context.Context, conn *sql.Conn, fn func(context.Context, querier) error) error {
	err := SQLite.whileLocked(ctx, func() error { return exec(ctx, conn, "BEGIN IMMEDIATE") })
	if err == nil {
		err = fn(ctx, conn)
	}
	if err == nil {
		err = SQLite.whileLocked(ctx, func() error { return exec(ctx, conn, "COMMIT") })
	}
	if err != nil {
		rollBack(ctx, conn)
	}
	return err
}

// rollBack ends the transaction that a connection may be in. That can be so after
// a BEGIN that failed: a driver whose context ends just then says so, although
// the statement was run. Such a connection must not go back to its pool: it keeps
// the file locked for as long as the process lives.
func rollBack(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := afterCall(ctx)
	defer cancel()
	if err := exec(ctx, conn, "ROLLBACK"); err != nil && sqliteCode(err) != noTransaction {
		discard(conn)
	}
}

// noTransaction is what SQLite answers to a ROLLBACK outside a transaction: the
// code for whatever makes no sense. The connection is as it should be, and of a
// database in memory it is the only one.
const noTransaction = 1
