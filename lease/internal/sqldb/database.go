package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// Querier runs statements: a connection, a transaction or a pool.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// DB is a pool of connections to a database, with its dialect.
type DB struct {
	*sql.DB
	Dialect Dialect
}

// MaxConflicts is how often a transaction is retried after conflicts with others.
const MaxConflicts = 20

// InTx runs fn in a transaction, and again if the transaction lost a conflict with another
// one; doing says for errors what was attempted. The context's deadline, by default 10 s
// from now, also bounds the transaction on the server's side: a process paused in the
// middle must not keep its locks.
func (d DB) InTx(ctx context.Context, doing string, fn func(context.Context, Querier) error) error {
	return d.InTxThen(ctx, doing, fn, nil)
}

// InTxThen is InTx. On SQLite it also runs then, if not nil, on the same
// connection after the commit, and returns its error.
func (d DB) InTxThen(
	ctx context.Context, doing string, fn func(context.Context, Querier) error, then func(context.Context, *sql.Conn) error,
) error {
	ctx, cancel := WithDefaultTimeout(ctx)
	defer cancel()
	for conflicts := 0; ; conflicts++ {
		err := d.tryTx(ctx, fn, then)
		if err == nil {
			return nil
		}
		if d.Dialect.FailureOf(err) != FailureConflict || conflicts == MaxConflicts || ctx.Err() != nil {
			return d.Dialect.Explain(doing, err)
		}
	}
}

const defaultTimeout = 10 * time.Second

// WithDefaultTimeout gives a context without a deadline one of 10 s.
func WithDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, defaultTimeout)
}

// Read runs fn, without writes, outside a transaction. The context's deadline, by default
// 10 s from now, bounds it.
func (d DB) Read(ctx context.Context, doing string, fn func(context.Context, Querier) error) error {
	ctx, cancel := WithDefaultTimeout(ctx)
	defer cancel()
	if d.Dialect != SQLite {
		return d.Dialect.Explain(doing, fn(ctx, d.DB))
	}
	conn, err := d.Connect(ctx)
	if err != nil {
		return d.Dialect.Explain(doing, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	restore, err := d.Dialect.Limit(ctx, conn, time.Until(deadline))
	if err != nil {
		return d.Dialect.Explain(doing, err)
	}
	defer restore()
	if err = checkBeforeUse(ctx, conn); err == nil {
		err = d.Dialect.retryWhileLocked(ctx, func() error { return fn(ctx, conn) })
	}
	discardBroken(conn, err)
	return d.Dialect.Explain(doing, err)
}

// Connect takes a connection from the pool. If several processes open a new SQLite file at
// the same time and set its journal mode, SQLite returns an error instead of waiting, so
// Connect retries.
func (d DB) Connect(ctx context.Context) (*sql.Conn, error) {
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for {
		conn, err := d.Conn(ctx)
		if err == nil || d.Dialect != SQLite || d.Dialect.FailureOf(err) != FailureBusy {
			return conn, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// tryTx runs fn in one transaction. The server stops waiting for locks a little before the
// context ends: then the error names the lock and the connection stays usable.
func (d DB) tryTx(ctx context.Context, fn func(context.Context, Querier) error, then func(context.Context, *sql.Conn) error) error {
	deadline, _ := ctx.Deadline()
	limit := max(time.Until(deadline)*9/10, time.Millisecond)
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	restore, err := d.Dialect.Limit(ctx, conn, limit)
	if err != nil {
		return err
	}
	defer restore()
	switch d.Dialect {
	case SQLite:
		err := checkBeforeUse(ctx, conn)
		if err == nil {
			err = inImmediateTx(ctx, conn, fn)
		}
		if err == nil && then != nil {
			err = then(ctx, conn)
		}
		discardBroken(conn, err)
		return err
	case MySQL:
		return inTxByStatements(ctx, conn, fn)
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := d.setTxLimits(ctx, tx, limit); err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// inTxByStatements runs fn in a transaction begun and ended by statements: the MySQL
// driver's own Commit waits for its answer without a bound.
func inTxByStatements(ctx context.Context, conn *sql.Conn, fn func(context.Context, Querier) error) error {
	for _, statement := range []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"} {
		if err := Exec(ctx, conn, statement); err != nil {
			Discard(conn) // the isolation level would apply to the next user's transaction
			return err
		}
	}
	err := fn(ctx, conn)
	if err == nil {
		err = Exec(ctx, conn, "COMMIT")
	}
	if err != nil {
		cleanUp(ctx, conn, "ROLLBACK")
	}
	return err
}

// maxIdleInTx is how long a server waits for the next statement of a transaction before it
// ends the transaction. Its locks make other nodes wait.
const maxIdleInTx = time.Second

// setTxLimits sets the limits of a transaction on PostgreSQL. They end with the
// transaction, because a pooler gives the connection to other clients afterwards. The
// commit is durable even if the user's default is not. The plan is custom: a plan cached
// while the tables were small compares every row with every value of a long list.
func (d DB) setTxLimits(ctx context.Context, tx *sql.Tx, limit time.Duration) error {
	const set = `
SELECT
    set_config('synchronous_commit', ` + DurableCommit + `, true),
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('idle_in_transaction_session_timeout', ?, true),
    set_config('statement_timeout', ?, true),
    set_config('lock_timeout', ?, true)`
	milliseconds := func(d time.Duration) string { return fmt.Sprintf("%dms", max(d.Milliseconds(), 1)) }
	bound := milliseconds(limit)
	_, err := tx.ExecContext(ctx, d.Dialect.Render(set), milliseconds(min(limit, maxIdleInTx)), bound, bound)
	return err
}

// DurableCommit is the value of synchronous_commit for durable commits: an acknowledged
// commit of PostgreSQL is on disk, and on the synchronous standbys if there are any.
const DurableCommit = `
        CASE current_setting('synchronous_commit')
            WHEN 'remote_apply' THEN 'remote_apply'
            ELSE 'on'
        END`

// Limit bounds how long transactions on a connection wait. restore undoes the limit,
// because the connection returns to a pool with other users. On SQLite the limit is always
// lockTimeout: retryWhileLocked waits instead.
func (d Dialect) Limit(ctx context.Context, conn *sql.Conn, limit time.Duration) (restore func(), err error) {
	var set, undo string
	switch d {
	case SQLite:
		var before int64
		if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&before); err != nil {
			return nil, err
		}
		set = fmt.Sprintf("PRAGMA busy_timeout = %d", lockTimeout.Milliseconds())
		undo = fmt.Sprintf("PRAGMA busy_timeout = %d", before)
	case MySQL:
		// Without a bound, a statement waiting for a table runs after its client has given
		// up, by default within a year. Drivers can give up before the context ends.
		var silence, locks, tables int64
		if err := conn.QueryRowContext(ctx, "SELECT @@wait_timeout, @@innodb_lock_wait_timeout, @@lock_wait_timeout").Scan(&silence, &locks, &tables); err != nil {
			return nil, err
		}
		const form = "SET SESSION wait_timeout = %d, innodb_lock_wait_timeout = %d, lock_wait_timeout = %d"
		seconds := func(d time.Duration) int64 { return int64(max(d/time.Second, 1)) }
		set, undo = fmt.Sprintf(form, seconds(maxIdleInTx), seconds(limit), seconds(min(limit, defaultTimeout))), fmt.Sprintf(form, silence, locks, tables)
	default:
		return func() {}, nil
	}
	restore = func() { cleanUp(ctx, conn, undo) }
	if _, err := conn.ExecContext(ctx, set); err != nil {
		restore() // the statement may have taken effect despite the error
		return nil, err
	}
	return restore, nil
}

// cleanUp resets a connection with a statement, and discards the connection if the
// statement fails.
func cleanUp(ctx context.Context, conn *sql.Conn, statement string) {
	ctx, cancel := CleanupContext(ctx)
	defer cancel()
	if err := Exec(ctx, conn, statement); err != nil {
		Discard(conn)
	}
}

// CleanupContext returns a context to reset a connection after a call, even if the
// context of the call has ended.
func CleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Second)
}

// Discard makes the pool close a connection instead of reusing it.
func Discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// ForEach calls scan for each row of a query.
func ForEach(ctx context.Context, on Querier, query string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Exec runs a statement and drops its result.
func Exec(ctx context.Context, on Querier, statement string, args ...any) error {
	_, err := on.ExecContext(ctx, statement, args...)
	return err
}
