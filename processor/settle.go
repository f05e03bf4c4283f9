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

// outcomeTimeout is how long one attempt to learn an outcome waits for a running commit on
// the server, before it reports the wait.
const outcomeTimeout = time.Second

// resolveOutcome finds out whether a transaction has committed after an unacknowledged
// commit. Each transaction of a processor locks its row. The server keeps the lock until
// the transaction has committed or rolled back, also during deferred triggers and while
// the commit waits for a synchronous standby. Therefore the lock is acquired first.
// Isolation levels other than READ COMMITTED would show the row as it was before the wait.
func (l *loop) resolveOutcome(ctx context.Context) error {
	if !l.outcomeUnknown {
		return nil
	}
	var s state
	options := l.txOptions(readCommitted, min(outcomeTimeout, l.trustWindow()))
	err := postgres.InTxOptions(ctx, l.database, options, l.term, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(ctx, l.tables.SQL(lockProcessor), l.config.Name); err != nil {
			return err
		}
		rows, err := readStates(ctx, tx, l.tables, l.term, []string{l.config.Name}, l.replaysAreLeft())
		s = rows[l.config.Name]
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("check the outcome of a commit: %w", err), l.inFlight(ctx, err))
	}
	l.outcomeUnknown = false
	if !l.since.IsZero() && (s.generation != l.state.generation || s.cursor != l.state.cursor) {
		// The progress was saved, or an operator has moved the cursor.
		l.unsaved = unsaved{}
	}
	return l.adopt(s)
}

// inFlight lists the transactions in the way of resolveOutcome by their locks.
func (l *loop) inFlight(ctx context.Context, cause error) error {
	var answer *pgconn.PgError
	if !errors.As(cause, &answer) || answer.Code != lockNotAvailable {
		return nil
	}
	rows, err := l.tables.Query(ctx, readOpen, l.markKey())
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
