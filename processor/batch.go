package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/usercode"
	"github.com/exactly-one/tenure/retry"
)

// handle handles a batch and moves the cursor in one fenced transaction.
func (l *loop) handle(term, ctx context.Context, events []Event) error {
	last := events[len(events)-1].Cursor
	var failure error
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		failure = l.handleIn(ctx, tx, events)
		if failure != nil {
			return failure
		}
		return l.move(ctx, tx, last, len(events))
	})
	ctx, cancel := l.recording(term)
	defer cancel()
	l.release()
	switch {
	case err == nil:
		l.unsaved = unsaved{} // the cursor has passed it
		return nil
	case term.Err() != nil || errors.Is(err, tenure.ErrFenced):
		return err
	case failure != nil:
		return l.handleFailure(ctx, events, failure)
	case serverResponded(err):
		// The server rejected the commit because of the batch, for example by a
		// deferred constraint, or for its own reasons.
		return l.handleFailure(ctx, events, err)
	default:
		return err
	}
}

// handleIn calls the handler in a transaction. It must still be open afterwards.
func (l *loop) handleIn(ctx context.Context, tx pgx.Tx, events []Event) error {
	late := false
	l.setEpoch(events)
	err := l.call(ctx, func(ctx context.Context) error {
		defer func() { late = ctx.Err() != nil }()
		return l.config.Handle(ctx, tx, events)
	})
	if status := tx.Conn().PgConn().TxStatus(); err == nil && status != 'T' {
		err = errTransaction
	}
	// After the end of its context, a handler closes its own connection.
	if err != nil && !late && tx.Conn().IsClosed() && !errors.Is(err, ErrPoison) {
		err = &databaseError{err}
	}
	return faultOf(err)
}

var errTransaction = errors.New("the handler left its transaction ended or failed, but returned no error")

// setEpoch sets the epoch of the events.
func (l *loop) setEpoch(events []Event) {
	for i := range events {
		events[i].Epoch = l.state.epoch
	}
}

// publish calls Publish with a batch and records how many events were taken.
func (l *loop) publish(term, ctx context.Context, events []Event) error {
	taken := 0
	l.setEpoch(events)
	failure := l.call(ctx, func(ctx context.Context) (err error) {
		taken, err = l.config.Publish(ctx, l.term, events)
		return err
	})
	ctx, cancel := l.recording(term)
	defer cancel()
	taken = max(0, min(taken, len(events)))
	if failure == nil && taken < len(events) {
		failure = fmt.Errorf("only %d of %d events were taken", taken, len(events))
	}
	if taken > 0 {
		l.recordProgress(events[taken-1].Cursor, taken)
	}
	if failure != nil && taken == len(events) {
		l.log.Warn("a publisher took all events but returned an error", "error", failure)
		failure = nil
	}
	if failure == nil {
		if time.Since(l.since) >= l.config.ProgressInterval {
			return l.save(ctx)
		}
		return nil
	}
	if err := l.save(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return l.handleFailure(ctx, events[taken:], failure)
}

// recordProgress records progress to save later.
func (l *loop) recordProgress(to Cursor, events int) {
	if l.since.IsZero() {
		l.since = time.Now()
	}
	l.unsaved.cursor = to
	l.events += events
}

// save writes the unsaved progress to the database. If the write fails, the progress is
// kept: it was made under this term.
func (l *loop) save(ctx context.Context) error {
	if l.since.IsZero() {
		return nil
	}
	err := l.fenced(ctx, func(tx pgx.Tx) error { return l.move(ctx, tx, l.unsaved.cursor, l.events) })
	if err == nil || errors.Is(err, errMoved) {
		l.unsaved = unsaved{}
	}
	return err
}

// skipInterval is how long progress over unselected events may stay unsaved, for each
// processor of the group: the group saves as often whatever its size. In a busy log there
// is always such progress.
const skipInterval = time.Second

// skipTo moves the cursor past unselected events.
func (l *loop) skipTo(ctx context.Context, scanned Cursor) error {
	l.recordProgress(scanned, 0)
	if time.Since(l.since) < l.skipping {
		return nil
	}
	return l.save(ctx)
}

// errMoved is returned if the row has changed since the batch began: an
// operator moved the cursor, or another term claimed the processor.
var errMoved = errors.New("an operator or another term changed the processor while the batch was in flight; the batch does not count")

// move moves the cursor from where the batch began.
func (l *loop) move(ctx context.Context, tx pgx.Tx, to Cursor, events int) error {
	from := l.state.cursor
	err := tx.QueryRow(ctx, l.tables.SQL(moveCursor), l.config.Name, fmt.Sprint(to.Transaction), to.Position, events, l.state.generation,
		l.term.Role().Name(), l.term.Number(), fmt.Sprint(from.Transaction), from.Position).
		Scan(&l.state.status, &l.state.rebuild)
	if errors.Is(err, pgx.ErrNoRows) {
		return errMoved
	}
	if err == nil {
		l.state.cursor = to
		if events > 0 {
			l.state.errors, l.state.countedAttempts = 0, 0
		}
	}
	return err
}

// handleFailure records a failure or moves the event to the dead letters.
func (l *loop) handleFailure(ctx context.Context, events []Event, failure error) error {
	l.stateKnown = false
	failure = faultOf(failure)
	if !errors.Is(failure, ErrUnavailable) {
		l.oneByOne, l.oneByOneUntil = true, events[len(events)-1].Cursor
	}
	attempts := l.state.errors + 1
	exhausted := l.countAttempt(len(events), failure)
	l.log.Warn("a batch failed", "events", len(events), "first", events[0].Cursor, "attempt", attempts, "error", failure)
	if exhausted && l.config.Poison == PoisonDeadLetter && len(events) == 1 {
		return l.moveToDeadLetters(ctx, events[0], attempts, failure)
	}
	return l.scheduleRetry(ctx, events, failure, exhausted && l.config.Poison == PoisonStop)
}

// scheduleRetry schedules the next attempt or stops the processor. If a single event
// was attempted and events can be blamed, it is recorded as the failing event.
func (l *loop) scheduleRetry(ctx context.Context, events []Event, failure error, stop bool) error {
	var transaction *string
	var position *int64
	if len(events) == 1 && !errors.Is(failure, ErrUnavailable) {
		text := fmt.Sprint(events[0].Transaction)
		transaction, position = &text, &events[0].Position
	}
	delay, again := l.retryDelay(failure)
	from := l.state.cursor
	return l.fenced(ctx, func(tx pgx.Tx) error {
		if err := l.countPanic(ctx, tx, failure); err != nil {
			return err
		}
		recorded, err := tx.Exec(ctx, l.tables.SQL(recordFailure), l.config.Name, printable.Clip(failure.Error(), maxError),
			float64(delay)/float64(time.Millisecond), stop || !again, l.state.generation, transaction, position, l.state.countedAttempts,
			l.term.Role().Name(), l.term.Number(), fmt.Sprint(from.Transaction), from.Position)
		if err == nil && recorded.RowsAffected() == 0 {
			err = errMoved
		}
		return err
	})
}

// retryDelay returns how long to wait after a failure, and whether to retry.
func (l *loop) retryDelay(failure error) (delay time.Duration, again bool) {
	attempts := retry.Failure{Attempt: l.state.errors + 1, LastError: failure}
	var fault *databaseError
	if errors.As(failure, &fault) {
		delay, _ = faultBackoff.NextDelay(attempts)
		return delay, true
	}
	reason, _ := usercode.Call(func() { delay, again = l.config.Retry.NextDelay(attempts) })
	if reason != nil {
		l.log.Error("the retry strategy panicked", "panic", reason)
		delay, again = l.config.MaxPollInterval, true
	}
	return max(delay, minPause(failure)), again
}

// moveToDeadLetters moves an event to the dead letters and the cursor past it.
func (l *loop) moveToDeadLetters(ctx context.Context, event Event, attempts int, failure error) error {
	l.log.Error("an event was moved to the dead letters", "event", event.Cursor, "type", event.Type, "attempts", attempts, "error", failure)
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.tables.SQL(addDeadLetter), l.config.Name, fmt.Sprint(event.Transaction), event.Position,
			printable.Clip(failure.Error(), maxError), attempts, l.term.Number())
		if err == nil {
			err = l.countPanic(ctx, tx, failure)
		}
		if err != nil {
			return err
		}
		return l.move(ctx, tx, event.Cursor, 1)
	})
	if err == nil {
		l.unsaved = unsaved{} // the cursor has passed the event
	}
	return err
}

// maxError is the maximum length of an error text in a row.
const maxError = 2000
