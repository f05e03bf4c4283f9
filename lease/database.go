package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// querier is what statements run on: a connection, a transaction or a pool.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// database runs statements in one dialect.
type database struct {
	*sql.DB
	dialect Dialect
}

// maxConflicts is how often a transaction is tried again that lost a conflict
// with others.
const maxConflicts = 20

// atomically runs fn in a transaction of its own, and runs it again if it lost a
// conflict with another. The context's deadline bounds it, also on the server's
// side: a process that is stopped in the middle must not keep what it locked. A
// context without a deadline gets one.
func (d database) atomically(ctx context.Context, doing string, fn func(context.Context, querier) error) error {
	return d.atomicallyThen(ctx, doing, fn, nil)
}

// atomicallyThen is atomically and, on SQLite, runs then on the same connection
// after the commit, if it is not nil. Its error is that of the whole.
func (d database) atomicallyThen(
	ctx context.Context, doing string, fn func(context.Context, querier) error, then func(context.Context, *sql.Conn) error,
) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	for conflicts := 0; ; conflicts++ {
		err := d.once(ctx, fn, then)
		if err == nil {
			return nil
		}
		if d.dialect.failureOf(err) != failureConflict || conflicts == maxConflicts || ctx.Err() != nil {
			return d.dialect.explain(doing, err)
		}
	}
}

// usualLimit bounds what the caller does not bound.
const usualLimit = 10 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, usualLimit)
}

// read runs fn for questions, outside a transaction. The context's deadline
// bounds it; one without a deadline gets one.
func (d database) read(ctx context.Context, doing string, fn func(context.Context, querier) error) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if d.dialect != SQLite {
		return d.dialect.explain(doing, fn(ctx, d.DB))
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return d.dialect.explain(doing, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	restore, err := d.dialect.limit(ctx, conn, time.Until(deadline))
	if err != nil {
		return d.dialect.explain(doing, err)
	}
	defer restore()
	err = d.dialect.whileLocked(ctx, func() error { return fn(ctx, conn) })
	discardBroken(conn, err)
	return d.dialect.explain(doing, err)
}

// connect takes a connection. Processes that open a new file of SQLite at the
// same time, each with its journal mode to set, are not made to wait for each
// other but refused.
func (d database) connect(ctx context.Context) (*sql.Conn, error) {
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for {
		conn, err := d.Conn(ctx)
		if err == nil || d.dialect != SQLite || d.dialect.failureOf(err) != failureBusy {
			return conn, err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// once runs fn in one transaction. The server gives up waiting a little earlier
// than the context ends, to say that it waited, and to keep the connection.
func (d database) once(ctx context.Context, fn func(context.Context, querier) error, then func(context.Context, *sql.Conn) error) error {
	deadline, _ := ctx.Deadline()
	limit := max(time.Until(deadline)*9/10, time.Millisecond)
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	restore, err := d.dialect.limit(ctx, conn, limit)
	if err != nil {
		return err
	}
	defer restore()
	switch d.dialect {
	case SQLite:
		err := immediately(ctx, conn, fn)
		if err == nil && then != nil {
			err = then(ctx, conn)
		}
		discardBroken(conn, err)
		return err
	case MySQL:
		return byStatements(ctx, conn, fn)
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := d.limitTransaction(ctx, tx, limit); err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// byStatements runs fn in a transaction that is begun and ended by statements:
// the driver of MySQL waits for the answer to its own Commit without a bound.
func byStatements(ctx context.Context, conn *sql.Conn, fn func(context.Context, querier) error) error {
	for _, statement := range []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"} {
		if err := exec(ctx, conn, statement); err != nil {
			discard(conn) // the level waits for the next transaction, whose ever that is
			return err
		}
	}
	err := fn(ctx, conn)
	if err == nil {
		err = exec(ctx, conn, "COMMIT")
	}
	if err != nil {
		afterwards(ctx, conn, "ROLLBACK")
	}
	return err
}

// maxSilence is how long a server waits for the next statement of a transaction
// before it takes the client for dead: what the transaction has locked keeps all
// others waiting.
const maxSilence = time.Second

// limitTransaction bounds a transaction on PostgreSQL, for itself alone: a
// pooler gives the connection to others afterwards. A role's default must not
// make its commit forgettable. A plan that was kept since the tables were small
// compares every row with every value of a long list.
func (d database) limitTransaction(ctx context.Context, tx *sql.Tx, limit time.Duration) error {
	const set = `
SELECT
    set_config('synchronous_commit', ` + durably + `, true),
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('idle_in_transaction_session_timeout', ?, true),
    set_config('statement_timeout', ?, true),
    set_config('lock_timeout', ?, true)`
	milliseconds := func(d time.Duration) string { return fmt.Sprintf("%dms", max(d.Milliseconds(), 1)) }
	bound := milliseconds(limit)
	_, err := tx.ExecContext(ctx, d.dialect.render(set), milliseconds(min(limit, maxSilence)), bound, bound)
	return err
}

// durably is the setting with which a commit of PostgreSQL is on disk when it is
// acknowledged, and with the standbys if they are synchronous.
const durably = `
        CASE current_setting('synchronous_commit')
            WHEN 'remote_apply' THEN 'remote_apply'
            ELSE 'on'
        END`

// limit bounds what a transaction on a connection may wait for, and returns what
// undoes that: the connection belongs to a pool that others use too.
func (d Dialect) limit(ctx context.Context, conn *sql.Conn, limit time.Duration) (restore func(), err error) {
	var set, undo string
	switch d {
	case SQLite:
		var before int64
		if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&before); err != nil {
			return nil, err
		}
		set = fmt.Sprintf("PRAGMA busy_timeout = %d", lockPatience.Milliseconds())
		undo = fmt.Sprintf("PRAGMA busy_timeout = %d", before)
	case MySQL:
		var silence, locks int64
		if err := conn.QueryRowContext(ctx, "SELECT @@wait_timeout, @@innodb_lock_wait_timeout").Scan(&silence, &locks); err != nil {
			return nil, err
		}
		const form = "SET SESSION wait_timeout = %d, innodb_lock_wait_timeout = %d"
		seconds := int64(max(limit/time.Second, 1))
		set, undo = fmt.Sprintf(form, int64(maxSilence/time.Second), seconds), fmt.Sprintf(form, silence, locks)
	default:
		return func() {}, nil
	}
	restore = func() { afterwards(ctx, conn, undo) }
	if _, err := conn.ExecContext(ctx, set); err != nil {
		restore() // it may have been done all the same
		return nil, err
	}
	return restore, nil
}

// afterwards leaves a connection as it was. One on which that fails is not used
// again.
func afterwards(ctx context.Context, conn *sql.Conn, statement string) {
	ctx, cancel := afterCall(ctx)
	defer cancel()
	if err := exec(ctx, conn, statement); err != nil {
		discard(conn)
	}
}

// afterCall is the context of what sets a connection right after a call, even one
// whose time is over.
func afterCall(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Second)
}

// discard makes a pool close a connection instead of using it again.
func discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// forEach hands each row of a query to scan.
func forEach(ctx context.Context, on querier, query string, scan func(*sql.Rows) error, args ...any) error {
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
