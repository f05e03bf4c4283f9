package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure/postgres"
)

// settlePatience is how long one attempt to settle waits for a commit that the
// server still runs, before that is reported.
const settlePatience = time.Second

// settle finds out what became of a transaction whose commit was not answered.
// Each transaction of a processor has locked its row before it commits, and the
// server keeps that lock until the transaction has committed or was rolled back:
// also while deferred triggers run, and while the commit waits for a synchronous
// standby. So the lock is taken first. At other isolation levels than READ
// COMMITTED the row would be that of before the wait.
func (l *loop) settle(ctx context.Context) error {
	if !l.doubt {
		return nil
	}
	var s state
	options := l.begins(readCommitted, min(settlePatience, l.window()))
	err := postgres.InTxOptions(ctx, l.database, options, l.term, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(ctx, l.tables.SQL(lockProcessor), l.config.Name); err != nil {
			return err
		}
		s, err = l.scanState(tx.QueryRow(ctx, l.tables.SQL(readState), l.claimed()...).Scan)
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("settling what became of a commit: %w", err), l.inFlight(ctx, err))
	}
	l.doubt = false
	if !l.since.IsZero() && (s.generation != l.state.generation || s.cursor != l.state.cursor) {
		// It was recorded, or an operator has moved the cursor.
		l.unsaved = unsaved{}
	}
	return l.adopt(s)
}

// inFlight names the transactions that a processor waits for, if that is why it
// cannot settle.
func (l *loop) inFlight(ctx context.Context, cause error) error {
	var answer *pgconn.PgError
	if !errors.As(cause, &answer) || answer.Code != lockNotAvailable {
		return nil
	}
	rows, err := l.tables.Query(ctx, readOpen, l.key())
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var pid int
		var status, waits, query string
		err := row.Scan(&pid, &status, &waits, &query)
		return fmt.Sprintf("PID %d (%s, waits for: %s, query: %s)", pid, status, waits, query), err
	})
	if err != nil || len(open) == 0 {
		return err
	}
	return fmt.Errorf("the server still runs: %s", strings.Join(open, ", "))
}
