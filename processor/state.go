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

// fenced runs a transaction, which commits only while the term is valid. After an error,
// state is unchanged. If the outcome of the commit is unknown, it must be resolved before
// anything depends on it.
func (l *loop) fenced(ctx context.Context, fn func(pgx.Tx) error) error {
	before, decided := l.state, false
	err := postgres.InTxOptions(ctx, l.connection(), l.txOptions("", l.trustWindow()), l.term, func(tx pgx.Tx) error {
		err := fn(tx)
		decided = err != nil // it will roll back
		return err
	})
	l.wrote = time.Now()
	if err != nil {
		l.state = before
		l.outcomeUnknown = l.outcomeUnknown || !decided
	}
	return err
}

// readCommitted is for transactions that must see all commits during their wait.
const readCommitted = " ISOLATION LEVEL READ COMMITTED"

// txOptions returns the options of a transaction with a lock timeout.
func (l *loop) txOptions(level string, patience time.Duration) pgx.TxOptions {
	window := max(1, l.trustWindow().Milliseconds())
	return pgx.TxOptions{BeginQuery: fmt.Sprintf(beginFenced, window, l.markKey(), max(1, patience.Milliseconds()), level)}
}

// markKey returns the lock key of the mark on the transactions of this processor's
// batches.
func (l *loop) markKey() int64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s\x00%s", l.tables.Channel("processors"), l.config.Name) // never fails
	return int64(hash.Sum64())
}

// trustWindow limits how long the locks of a batch outlive this process if it is
// paused: the trust window.
func (l *loop) trustWindow() time.Duration {
	timing := l.node.Timing()
	return timing.Lease - timing.Margin
}

// one reads one row.
func (l *loop) one(ctx context.Context, sql string, args []any, into ...any) error {
	rows, err := l.tables.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (none struct{}, err error) { return none, row.Scan(into...) })
	return err
}

func (l *loop) readState(ctx context.Context) error {
	rows, err := readStates(ctx, l.database, l.tables, l.term, []string{l.config.Name}, l.replaysAreLeft())
	if err != nil {
		return err
	}
	return l.adopt(rows[l.config.Name])
}

// readShared is readState from a read for all processors of the group. The read must have
// begun after the loop's last wait and last write.
func (l *loop) readShared(ctx context.Context) error {
	since := l.changed
	if since.Before(l.wrote) {
		since = l.wrote
	}
	s, err := l.states.read(ctx, l.config.Name, since)
	if err != nil {
		return err
	}
	return l.adopt(s)
}

// claimArgs returns the arguments to identify the processor and the term.
func (l *loop) claimArgs() []any {
	return []any{l.config.Name, l.term.Role().Name(), l.term.Number()}
}

// replaysAreLeft reports whether a pass over dead letters has more to replay.
func (l *loop) replaysAreLeft() bool { return l.replays.after != Cursor{} }

func scanState(scan func(into ...any) error) (s state, err error) {
	var transaction int64
	var pause float64
	err = scan(&s.ownedByTerm, &s.status, &s.busy, &s.epoch, &transaction, &s.cursor.Position, &s.generation, &s.rebuild, &s.replay, &s.stuck, &s.errors, &s.countedAttempts, &pause)
	s.cursor.Transaction = uint64(transaction)
	s.pause = max(0, time.Duration(pause*float64(time.Millisecond)))
	return s, err
}

// adopt continues from a state just read, unless another role has claimed the processor
// since, or an operator has deleted or restored its row.
func (l *loop) adopt(s state) error {
	if !s.ownedByTerm {
		l.begun = false
		return errMoved
	}
	if l.events == 0 && (s.generation != l.state.generation || s.cursor != l.state.cursor) {
		l.unsaved = unsaved{} // it follows another cursor
	}
	l.state, l.stateKnown, l.readAt = s, true, time.Now()
	return nil
}

// setBusy records whether a batch may be in flight, for callers of Pause. If the
// processor was paused since its row was read, no batch may begin: Pause has returned.
func (l *loop) setBusy(ctx context.Context, busy bool) error {
	if l.state.busy == busy {
		return nil
	}
	return l.fenced(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, l.tables.SQL(setBusy), l.config.Name, busy, l.term.Number(), l.term.Role().Name()).Scan(&l.state.busy)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && l.state.busy != busy {
			err = errMoved
		}
		return err
	})
}

// rebuild empties the processor's output and starts at the beginning.
func (l *loop) rebuild(term, ctx context.Context) error {
	l.stateKnown, l.oneByOne = false, false
	l.log.Info("rebuilding")
	var failure error
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		if l.config.Reset != nil {
			failure = l.call(ctx, func(ctx context.Context) error { return l.config.Reset(ctx, tx) })
		}
		if failure != nil {
			return failure
		}
		if _, err := tx.Exec(ctx, l.tables.SQL(forgetAllDeadLetters), l.config.Name); err != nil {
			return err
		}
		finished, err := tx.Exec(ctx, l.tables.SQL(finishRebuild), l.config.Name, l.state.generation, l.term.Role().Name(), l.term.Number())
		if err == nil && finished.RowsAffected() == 0 {
			err = errMoved
		}
		return err
	})
	if failure == nil || term.Err() != nil {
		return err
	}
	ctx, cancel := l.recording(term)
	defer cancel()
	failure = faultOf(fmt.Errorf("empty before the rebuild: %w", failure))
	l.log.Warn("a rebuild failed", "attempt", l.state.errors+1, "error", failure)
	return l.scheduleRetry(ctx, nil, failure, !errors.Is(failure, ErrUnavailable) && l.state.errors+1 >= l.config.MaxAttempts)
}

// value returns the value of a column, or the zero value for NULL.
func value[T any](column *T) (v T) {
	if column != nil {
		v = *column
	}
	return v
}
