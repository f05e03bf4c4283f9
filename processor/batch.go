package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// handle handles a batch in one transaction with the cursor, fenced.
func (l *loop) handle(ctx context.Context, events []Event) error {
	last := events[len(events)-1].Cursor
	var failure error
	err := l.fenced(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, beginBatch, l.key(), milliseconds(l.window())); err != nil {
			return err
		}
		failure = l.call(ctx, func(ctx context.Context) error { return l.config.Handle(ctx, tx, events) })
		if failure != nil {
			return failure
		}
		return l.move(ctx, tx, last, len(events))
	})
	switch {
	case failure == nil || ctx.Err() != nil || errors.Is(err, tenure.ErrFenced):
		return err
	default:
		return l.failed(ctx, events, failure)
	}
}

// publish hands a batch over and notes how much of it was taken.
func (l *loop) publish(ctx context.Context, events []Event) error {
	taken := 0
	failure := l.call(ctx, func(ctx context.Context) (err error) {
		taken, err = l.config.Publish(ctx, l.term, events)
		return err
	})
	taken = max(0, min(taken, len(events)))
	if failure == nil && taken < len(events) {
		failure = fmt.Errorf("only %d of %d events were taken", taken, len(events))
	}
	if taken > 0 {
		if l.events == 0 {
			l.since = time.Now()
		}
		l.unsaved.cursor = events[taken-1].Cursor
		l.events += taken
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

// call calls a handler within its time and makes an error of a panic.
func (l *loop) call(ctx context.Context, fn func(context.Context) error) (err error) {
	limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout)
	defer cancel()
	begun := time.Now()
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the handler panicked: %v", reason)
		}
		if took := time.Since(begun); took > l.config.HandleTimeout+time.Second {
			l.log.Error("the handler ignored the end of its context", "took", took, "handle_timeout", l.config.HandleTimeout)
		}
	}()
	return fn(limited)
}

// save tells the database of the progress so far.
func (l *loop) save(ctx context.Context) error {
	if l.events == 0 {
		return nil
	}
	err := l.fenced(ctx, func(tx pgx.Tx) error { return l.move(ctx, tx, l.unsaved.cursor, l.events) })
	l.unsaved = unsaved{}
	return err
}

// skipTo moves the cursor behind events that were not selected.
func (l *loop) skipTo(ctx context.Context, scanned Cursor) error {
	return l.fenced(ctx, func(tx pgx.Tx) error { return l.move(ctx, tx, scanned, 0) })
}

// errMoved says that somebody moved the cursor while a batch was in flight.
var errMoved = errors.New("the cursor was moved by hand meanwhile; the batch does not count")

// move moves the cursor.
func (l *loop) move(ctx context.Context, tx pgx.Tx, to Cursor, events int) error {
	err := tx.QueryRow(ctx, l.backend.SQL(moveCursor), l.config.Name, fmt.Sprint(to.Transaction), to.Position, events, l.state.generation).
		Scan(&l.state.status, &l.state.rebuild)
	if errors.Is(err, pgx.ErrNoRows) {
		return errMoved
	}
	if err == nil {
		l.state.cursor = to
		if events > 0 {
			l.state.errors = 0
		}
	}
	return err
}

// failed records a failure, or gives an event up.
func (l *loop) failed(ctx context.Context, events []Event, failure error) error {
	l.known = false
	if !errors.Is(failure, ErrUnavailable) {
		l.single, l.until = true, events[len(events)-1].Cursor
	}
	attempts := l.state.errors + 1
	exhausted := l.blame(len(events), failure)
	l.log.Warn("a batch failed", "events", len(events), "first", events[0].Cursor, "attempt", attempts, "error", failure)
	if exhausted && l.config.Poison == DeadLetter && len(events) == 1 {
		return l.bury(ctx, events[0], attempts, failure)
	}
	stop := exhausted && l.config.Poison == Stop
	delay, again := l.config.Retry.NextDelay(tenure.Attempts{Attempt: attempts, LastError: failure})
	return l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.backend.SQL(recordFailure), l.config.Name, clip(failure.Error()),
			float64(delay)/float64(time.Millisecond), stop || !again, l.state.generation)
		return err
	})
}

// bury puts an event among the dead letters and goes on behind it.
func (l *loop) bury(ctx context.Context, event Event, attempts int, failure error) error {
	l.log.Error("an event was given up", "event", event.Cursor, "type", event.Type, "attempts", attempts, "error", failure)
	return l.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.backend.SQL(addDeadLetter), l.config.Name, fmt.Sprint(event.Transaction), event.Position,
			clip(failure.Error()), attempts, l.term.Number())
		if err != nil {
			return err
		}
		return l.move(ctx, tx, event.Cursor, 1)
	})
}

// clip shortens a text for a column that people read.
func clip(text string) string {
	const most = 2000
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
