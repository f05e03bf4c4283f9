package sqldb

import (
	"context"
	"database/sql"
	"time"
)

// lockTimeout is how long SQLite itself waits for the lock of its file.
const lockTimeout = 10 * time.Millisecond

// retryWhileLocked repeats do while SQLite finds its file locked, until ctx ends. SQLite's
// own waiting is not enough. It checks less and less often, in the end ten times a second:
// a few programs writing without a pause can lock it out for ever. No context interrupts
// it.
func (d Dialect) retryWhileLocked(ctx context.Context, do func() error) error {
	var locked error
	for {
		err := do()
		switch {
		case d == SQLite && d.FailureOf(err) == FailureBusy:
			locked = err
		case locked != nil && ctx.Err() != nil:
			return locked // more precise than the error of the context
		default:
			return err
		}
		if ctx.Err() != nil {
			return locked
		}
	}
}

// inImmediateTx runs fn in a transaction that locks the file for writing before it reads:
// after a read, a transaction cannot wait for another writer.
func inImmediateTx(ctx context.Context, conn *sql.Conn, fn func(context.Context, Querier) error) error {
	err := SQLite.retryWhileLocked(ctx, func() error { return Exec(ctx, conn, "BEGIN IMMEDIATE") })
	if err == nil {
		err = fn(ctx, conn)
	}
	if err == nil {
		err = SQLite.retryWhileLocked(ctx, func() error { return Exec(ctx, conn, "COMMIT") })
	}
	if err != nil {
		rollBack(ctx, conn)
	}
	return err
}

// rollBack ends the transaction of a connection, if it is in one, and otherwise
// discards the connection. Even a failed BEGIN can have begun a transaction: when
// the context ends, a driver returns an error although the statement was run. Back
// in the pool, such a connection would keep the file locked until the process ends.
func rollBack(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := CleanupContext(ctx)
	defer cancel()
	if err := Exec(ctx, conn, "ROLLBACK"); err != nil && sqliteCode(err) != noTransaction {
		Discard(conn)
	}
}

// noTransaction is the code of SQLite's answer to a ROLLBACK outside a transaction,
// the general SQLITE_ERROR. The connection is sound then and must be kept: it is the
// only one of an in-memory database.
const noTransaction = 1
