package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/printable"
)

// findEvent reads one event of a log, whether selected or not.
const findEvent = `
SELECT
    log.transaction_id,
    log.position::bigint,
    log.type::text,
    log.tags::text[],
    log.data::jsonb,
    log.occurred_at::timestamptz,
    log.correlation_id::uuid,
    log.causation_id::uuid
FROM (%[1]s) log
WHERE log.transaction_id = $%[2]d::text::xid8 AND log.position = $%[3]d::bigint`

var errEventGone = errors.New("the log no longer has the event")

// replay passes the next dead letter with a requested replay to the handler.
func (l *loop) replay(term, ctx context.Context) error {
	l.stateKnown = false
	var id int64
	var at Cursor
	err := l.one(ctx, nextReplay, []any{l.config.Name}, &id, &at.Transaction, &at.Position)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	event, err := l.reader.find(ctx, at)
	switch {
	case errors.Is(err, errEventGone):
		return l.replayFailed(ctx, id, at, err)
	case err != nil:
		return err
	case l.config.Handle == nil:
		return l.publishAgain(term, ctx, id, event)
	}
	var failure error
	err = l.fenced(ctx, func(tx pgx.Tx) error {
		failure = l.handleIn(ctx, tx, []Event{event})
		if failure != nil {
			return failure
		}
		return l.markReplayed(ctx, tx, id)
	})
	ctx, cancel := l.recording(term)
	defer cancel()
	switch {
	case err == nil:
		l.replayFaults = 0
		l.log.Info("a dead letter was replayed", "event", at)
		return nil
	case failure == nil && !serverResponded(err) || term.Err() != nil:
		return err
	case failure == nil:
		failure = faultOf(err)
	}
	return l.replayFailed(ctx, id, at, failure)
}

// publishAgain publishes a dead letter.
func (l *loop) publishAgain(term, ctx context.Context, id int64, event Event) error {
	event.Epoch = l.state.epoch
	failure := l.call(ctx, func(ctx context.Context) error {
		taken, err := l.config.Publish(ctx, l.term, []Event{event})
		if err == nil && taken != 1 {
			err = errors.New("the event was not taken")
		}
		return err
	})
	ctx, cancel := l.recording(term)
	defer cancel()
	switch {
	case term.Err() != nil:
		return context.Cause(term)
	case failure != nil:
		return l.replayFailed(ctx, id, event.Cursor, faultOf(failure))
	}
	return l.fenced(ctx, func(tx pgx.Tx) error { return l.markReplayed(ctx, tx, id) })
}

// markReplayed marks a dead letter as replayed. If a rewind has removed it, the
// event is handled again anyway.
func (l *loop) markReplayed(ctx context.Context, tx pgx.Tx, id int64) error {
	if err := l.holdClaim(ctx, tx); err != nil {
		return err
	}
	marked, err := tx.Exec(ctx, l.tables.SQL(markReplayed), id)
	if err == nil && marked.RowsAffected() == 0 {
		err = errMoved
	}
	return err
}

// holdClaim locks the processor's row for this term until the transaction ends,
// so that others wait for its outcome.
func (l *loop) holdClaim(ctx context.Context, tx pgx.Tx) error {
	held, err := tx.Exec(ctx, l.tables.SQL(holdClaim), l.claimArgs()...)
	if err == nil && held.RowsAffected() == 0 {
		err = errMoved
	}
	return err
}

// maxReplayFaults is how many consecutive database errors are tolerated in the
// replay of a dead letter: new events wait in the meantime.
const maxReplayFaults = 10

// replayFailed keeps a dead letter and records the error.
func (l *loop) replayFailed(ctx context.Context, id int64, at Cursor, failure error) error {
	var fault *databaseError
	if l.replayFaults++; errors.As(failure, &fault) && l.replayFaults < maxReplayFaults {
		return fmt.Errorf("replay the dead letter %v: %w", at, failure)
	}
	l.replayFaults = 0
	l.log.Warn("replaying a dead letter failed", "event", at, "error", failure)
	return l.fenced(ctx, func(tx pgx.Tx) error {
		if err := l.holdClaim(ctx, tx); err != nil {
			return err
		}
		if err := l.countPanic(ctx, tx, failure); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.tables.SQL(replayFailed), id, printable.Clip(failure.Error(), maxError), l.term.Number())
		return err
	})
}

// find reads one event.
func (r *reader) find(ctx context.Context, at Cursor) (Event, error) {
	n := len(r.log.args)
	rows, err := r.query(ctx, r.database, fmt.Sprintf(findEvent, r.log.query, n+1, n+2), at)
	if err != nil {
		return Event{}, err
	}
	events, err := decode(rows, 1)
	switch {
	case err != nil:
		return Event{}, fmt.Errorf("read the log: %w", err)
	case len(events) == 0:
		return Event{}, errEventGone
	}
	return events[0], nil
}
