package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// handle handles a batch in one transaction with the cursor, fenced.
func (l *loop) handle(ctx context.Context, events []Event) error {
	last := events[len(events)-1].Cursor
	var failure error
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		failure = l.handleIn(ctx, tx, events)
		if failure != nil {
			return failure
		}
		return l.move(ctx, tx, last, len(events))
	})
	switch {
	case err == nil:
		l.unsaved = unsaved{} // the batch lies behind it
		return nil
	case ctx.Err() != nil || errors.Is(err, tenure.ErrFenced):
		return err
	case failure != nil:
		return l.failed(ctx, events, failure)
	case answered(err):
		// The server has refused the transaction for what is in it, as a deferred
		// constraint does at the commit, or for its own reasons.
		return l.failed(ctx, events, err)
	default:
		return err
	}
}

// handleIn calls the handler within a transaction, which must be open after it.
func (l *loop) handleIn(ctx context.Context, tx pgx.Tx, events []Event) error {
	late := false
	l.stamp(events)
	err := l.call(ctx, func(ctx context.Context) error {
		defer func() { late = ctx.Err() != nil }()
		return l.config.Handle(ctx, tx, events)
	})
	if status := tx.Conn().PgConn().TxStatus(); err == nil && status != 'T' {
		err = errTransaction
	}
	// A handler that takes too long breaks its own connection.
	if err != nil && !late && tx.Conn().IsClosed() && !errors.Is(err, ErrPoison) {
		err = &databaseError{err}
	}
	return faultOf(err)
}

var errTransaction = errors.New("the handler left its transaction ended or failed, but returned no error")

// stamp gives events the epoch in which they are handled.
func (l *loop) stamp(events []Event) {
	for i := range events {
		events[i].Epoch = l.state.epoch
	}
}

// publish hands a batch over and notes how much of it was taken.
func (l *loop) publish(ctx context.Context, events []Event) error {
	taken := 0
	l.stamp(events)
	failure := l.call(ctx, func(ctx context.Context) (err error) {
		taken, err = l.config.Publish(ctx, l.term, events)
		return err
	})
	taken = max(0, min(taken, len(events)))
	if failure == nil && taken < len(events) {
		failure = fmt.Errorf("only %d of %d events were taken", taken, len(events))
	}
	if taken > 0 {
		l.note(events[taken-1].Cursor, taken)
	}
	if failure != nil && taken == len(events) {
		l.log.Warn("a publisher has taken all events and failed all the same", "error", failure)
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
	return l.failed(ctx, events[taken:], failure)
}

// note keeps progress that the database need not know of at once.
func (l *loop) note(to Cursor, events int) {
	if l.since.IsZero() {
		l.since = time.Now()
	}
	l.unsaved.cursor = to
	l.events += events
}

// save tells the database of the progress so far. What could not be told is
// kept: it was made under this term, whatever the database knows of it.
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

// skipInterval is how long a processor may keep to itself that it has passed
// events which were not selected: in a busy log they come all the time.
const skipInterval = time.Second

// skipTo moves the cursor behind events that were not selected.
func (l *loop) skipTo(ctx context.Context, scanned Cursor) error {
	l.note(scanned, 0)
	if time.Since(l.since) < skipInterval {
		return nil
	}
	return l.save(ctx)
}

// errMoved says that the row is not what the batch began with: an operator has
// moved the cursor, or the processor is another term's.
var errMoved = errors.New("the processor was changed while a batch was in flight; the batch does not count")

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
			l.state.errors, l.state.blamed = 0, 0
		}
	}
	return err
}

// failed records a failure, or gives an event up.
func (l *loop) failed(ctx context.Context, events []Event, failure error) error {
	l.known = false
	failure = faultOf(failure)
	if !errors.Is(failure, ErrUnavailable) {
		l.single, l.until = true, events[len(events)-1].Cursor
	}
	attempts := l.state.errors + 1
	exhausted := l.blame(len(events), failure)
	l.log.Warn("a batch failed", "events", len(events), "first", events[0].Cursor, "attempt", attempts, "error", failure)
	if exhausted && l.config.Poison == PoisonDeadLetter && len(events) == 1 {
		return l.bury(ctx, events[0], attempts, failure)
	}
	return l.record(ctx, events, failure, exhausted && l.config.Poison == PoisonStop)
}

// record has the next attempt wait, or the processor stop. The events are those
// of the attempt; a single one is known to fail, if an event is to blame.
func (l *loop) record(ctx context.Context, events []Event, failure error, stop bool) error {
	var transaction *string
	var position *int64
	if len(events) == 1 && !errors.Is(failure, ErrUnavailable) {
		text := fmt.Sprint(events[0].Transaction)
		transaction, position = &text, &events[0].Position
	}
	delay, again := l.delay(failure)
	from := l.state.cursor
	return l.fenced(ctx, func(tx pgx.Tx) error {
		if err := l.countPanic(ctx, tx, failure); err != nil {
			return err
		}
		recorded, err := tx.Exec(ctx, l.tables.SQL(recordFailure), l.config.Name, clip(failure.Error()),
			float64(delay)/float64(time.Millisecond), stop || !again, l.state.generation, transaction, position, l.state.blamed,
			l.term.Role().Name(), l.term.Number(), fmt.Sprint(from.Transaction), from.Position)
		if err == nil && recorded.RowsAffected() == 0 {
			err = errMoved
		}
		return err
	})
}

// delay is how long to wait after a failure, and whether to try again at all.
func (l *loop) delay(failure error) (delay time.Duration, again bool) {
	attempts := retry.Failure{Attempt: l.state.errors + 1, LastError: failure}
	var fault *databaseError
	if errors.As(failure, &fault) {
		delay, _ = faultBackoff.NextDelay(attempts)
		return delay, true
	}
	delay, again = l.config.Retry.NextDelay(attempts)
	return max(delay, pauseAfter(failure)), again
}

// bury puts an event among the dead letters and goes on behind it.
func (l *loop) bury(ctx context.Context, event Event, attempts int, failure error) error {
	l.log.Error("an event was given up", "event", event.Cursor, "type", event.Type, "attempts", attempts, "error", failure)
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.tables.SQL(addDeadLetter), l.config.Name, fmt.Sprint(event.Transaction), event.Position,
			clip(failure.Error()), attempts, l.term.Number())
		if err == nil {
			err = l.countPanic(ctx, tx, failure)
		}
		if err != nil {
			return err
		}
		return l.move(ctx, tx, event.Cursor, 1)
	})
	if err == nil {
		l.unsaved = unsaved{} // the event lies behind it
	}
	return err
}

// clip makes of any text one that fits a column that people read.
func clip(text string) string {
	const most = 2000
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
}
