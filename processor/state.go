package processor

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// fenced runs a transaction that commits only while the term stands.
func (l *loop) fenced(ctx context.Context, fn func(pgx.Tx) error) error {
	window := max(1, l.window().Milliseconds())
	options := pgx.TxOptions{BeginQuery: fmt.Sprintf(beginFenced, window, l.key())}
	return postgres.InTxOptions(ctx, l.database, options, l.term, fn)
}

// key marks the transactions of this processor's batches in the lock table.
func (l *loop) key() int64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s\x00%s", l.backend.Channel("processors"), l.config.Name) // never fails
	return int64(hash.Sum64())
}

// window bounds how long the locks of a batch outlive this process if it stops:
// as long as its term may be trusted.
func (l *loop) window() time.Duration {
	timing := l.node.Timing()
	return timing.Lease - timing.Margin
}

// one reads one row.
func (l *loop) one(ctx context.Context, sql string, args []any, into ...any) error {
	rows, err := l.database.Query(ctx, l.backend.SQL(sql), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return errors.Join(rows.Err(), pgx.ErrNoRows)
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

func (l *loop) readState(ctx context.Context) error {
	var s state
	var transaction int64
	var pause float64
	err := l.one(ctx, readState, []any{l.config.Name},
		&s.status, &transaction, &s.cursor.Position, &s.generation, &s.rebuild, &s.replay, &s.errors, &s.blamed, &pause)
	if err != nil {
		return fmt.Errorf("reading the state of %s: %w", l.config.Name, err)
	}
	s.cursor.Transaction = uint64(transaction)
	s.pause = max(0, time.Duration(pause*float64(time.Millisecond)))
	l.state, l.known, l.readAt = s, true, time.Now()
	return nil
}

// setBusy tells those who pause the processor whether a batch may be in flight.
func (l *loop) setBusy(ctx context.Context, busy bool) error {
	if l.busy == busy {
		return nil
	}
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.backend.SQL(setBusy), l.config.Name, busy, l.term.Number())
		return err
	})
	if err == nil {
		l.busy = busy
	}
	return err
}

// rebuild empties what the processor fills and begins again at the start.
func (l *loop) rebuild(ctx context.Context) error {
	l.known, l.single = false, false
	l.log.Info("rebuilding")
	var failure error
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		if l.config.Reset != nil {
			failure = l.call(ctx, func(ctx context.Context) error { return l.config.Reset(ctx, tx) })
		}
		if failure != nil {
			return failure
		}
		if _, err := tx.Exec(ctx, l.backend.SQL(forgetAllDeadLetters), l.config.Name); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.backend.SQL(finishRebuild), l.config.Name)
		return err
	})
	if failure == nil || ctx.Err() != nil {
		return err
	}
	failure = fmt.Errorf("emptying before the rebuild: %w", failure)
	l.log.Warn("a rebuild failed", "attempt", l.state.errors+1, "error", failure)
	return l.record(ctx, nil, failure, l.state.errors+1 >= l.config.MaxAttempts)
}

// value is that of a column, or the zero value for NULL.
func value[T any](column *T) (v T) {
	if column != nil {
		v = *column
	}
	return v
}
