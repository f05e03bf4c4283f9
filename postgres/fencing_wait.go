package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// A row locked in a savepoint contains the savepoint's number. Once the savepoint is
// released, SQL offers no way from this number to the transaction. But a backend that
// waits for the row waits for the transaction.

const (
	// The wait needs the same lock as the begin of the next term, and releases it
	// immediately.
	waitForRows = `
SELECT
FROM {terms} t
JOIN unnest($1::text[], $2::bigint[]) AS b(role, term) ON t.role = b.role AND t.term = b.term
ORDER BY t.role
FOR UPDATE OF t`

	// A prepared transaction blocks as the process 0.
	readBlockers = `
SELECT
    pg_blocking_pids($1::int),
    coalesce((SELECT l.transactionid::text FROM pg_locks l WHERE l.pid = $1 AND l.locktype = 'transactionid' AND NOT l.granted), '')`

	// waitTimeout bounds the wait, and waitTick is the interval of checks.
	waitTimeout = 500 * time.Millisecond
	waitTick    = 10 * time.Millisecond
)

// blockers waits for the rows of roles on another connection and returns the transactions
// in its way.
func (f *blockerTerminator) blockers(ctx context.Context, conn *pgx.Conn, roles []string, last []int64) (found culprits, err error) {
	waiter, err := f.connect(ctx)
	if err != nil {
		return found, err
	}
	defer link.Discard(waiter)
	if err := limitLockWait(ctx, waiter, waitTimeout); err != nil {
		return found, err
	}
	ended := make(chan struct{})
	go func() { // ends when it is canceled, within waitTimeout, or with ctx
		defer close(ended)
		_, _ = waiter.Exec(ctx, f.session.backend.names.SQL(waitForRows), roles, last) // it fails if it waits too long, which blockers expects
	}()
	defer func() {
		_, _ = conn.Exec(ctx, "SELECT pg_cancel_backend($1)", int32(waiter.PgConn().PID())) // if it fails, the wait ends within waitTimeout
		<-ended
	}()
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return found, nil
		case <-tick.C:
		}
		var transaction string
		err := conn.QueryRow(ctx, readBlockers, int32(waiter.PgConn().PID())).Scan(&found.pids, &transaction)
		if err != nil {
			return found, err
		}
		if transaction != "" {
			found.transactions = []string{transaction}
		}
		found.pids = slices.DeleteFunc(found.pids, func(pid int32) bool { return pid == 0 })
		if len(found.pids) > 0 || transaction != "" {
			return found, nil
		}
	}
}

// limitLockWait bounds each wait for a lock on a connection.
func limitLockWait(ctx context.Context, conn *pgx.Conn, limit time.Duration) error {
	_, err := conn.Exec(ctx, `SELECT set_config('lock_timeout', $1, false)`, link.Milliseconds(limit))
	return err
}
