package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/printable"
)

// findEvents reads events of a log by their cursors, whether selected or not. LIMIT keeps one
// look into the index for each of them.
const findEvents = `
SELECT found.*
FROM unnest($%[2]d::text[], $%[3]d::bigint[]) AS wanted (transaction_id, position)
CROSS JOIN LATERAL (
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
    WHERE log.transaction_id = wanted.transaction_id::xid8 AND log.position = wanted.position
    LIMIT 1
) found
ORDER BY 1, 2`

var errEventGone = errors.New("the log no longer has the event")

// replays is the progress of replays. A pass replays the requested dead letters in log order.
type replays struct {
	turn          bool      // the current batch is a replay
	after         Cursor    // the last dead letter of this pass; zero before the first
	oneByOneUntil Cursor    // the end of a batch that failed: its events are repeated one at a time
	faults        int       // consecutive database errors of one dead letter
	delay         pause     // after the next of them
	pausedUntil   time.Time // after the last of them
}

// passed records dead letters up to last as done with their attempts.
func (r *replays) passed(last Cursor) { r.after, r.faults, r.delay = last, 0, 0 }

// letters are dead letters in log order.
type letters struct {
	ids []int64
	at  []Cursor
}

// replay passes the next dead letters with a requested replay to the handler.
func (l *loop) replay(term, ctx context.Context) error {
	l.stateKnown = false
	batch, err := l.nextReplays(ctx)
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	if len(batch.ids) == 0 {
		l.replays.after = Cursor{} // the pass is over
		return nil
	}
	events, err := l.reader.find(ctx, batch.at)
	if err != nil {
		return err
	}
	batch, gone := batch.split(events)
	if len(gone.ids) > 0 {
		if err := l.recordReplayFailed(ctx, gone, errEventGone); err != nil {
			return err
		}
	}
	switch {
	case len(events) == 0:
		l.replays.passed(gone.at[len(gone.at)-1])
		return nil
	case l.config.Handle == nil:
		return l.publishAgain(term, ctx, batch, events)
	}
	var failure error
	err = l.fenced(ctx, func(tx pgx.Tx) error {
		failure = l.handleIn(ctx, tx, events)
		if failure != nil {
			return failure
		}
		return l.markReplayed(ctx, tx, batch.ids)
	})
	ctx, cancel := l.recording(term)
	defer cancel()
	switch {
	case err == nil:
		l.replayed(batch)
		return nil
	case failure == nil && !serverResponded(err) || term.Err() != nil:
		return err
	case failure == nil:
		failure = faultOf(err)
	}
	return l.replayFailed(ctx, batch, failure)
}

// nextReplays reads the next dead letters to replay. With CursorsOnly, a handler reads all
// events in the range of a batch, so it gets one.
func (l *loop) nextReplays(ctx context.Context) (batch letters, err error) {
	limit, after := l.config.BatchSize, l.replays.after
	if l.config.CursorsOnly || after.Before(l.replays.oneByOneUntil) {
		limit = 1
	}
	rows, _ := l.tables.Query(ctx, nextReplays, l.config.Name, fmt.Sprint(after.Transaction), after.Position, limit) // rows reports the error
	var id int64
	var at Cursor
	_, err = pgx.ForEachRow(rows, []any{&id, &at.Transaction, &at.Position}, func() error {
		batch.ids, batch.at = append(batch.ids, id), append(batch.at, at)
		return nil
	})
	return batch, err
}

// split separates the dead letters of these events from dead letters without an event.
func (b letters) split(events []Event) (found, gone letters) {
	for i, at := range b.at {
		to := &gone
		if slices.ContainsFunc(events, func(e Event) bool { return e.Cursor == at }) {
			to = &found
		}
		to.ids, to.at = append(to.ids, b.ids[i]), append(to.at, at)
	}
	return found, gone
}

// replayed records the successful replay of dead letters.
func (l *loop) replayed(batch letters) {
	last := batch.at[len(batch.at)-1]
	l.replays.passed(last)
	l.log.Info("dead letters were replayed", "events", len(batch.at), "last", last)
}

// publishAgain publishes dead letters.
func (l *loop) publishAgain(term, ctx context.Context, batch letters, events []Event) error {
	l.setEpoch(events)
	taken := 0
	failure := l.call(ctx, func(ctx context.Context) (err error) {
		taken, err = l.config.Publish(ctx, l.term, events)
		return err
	})
	ctx, cancel := l.recording(term)
	defer cancel()
	if term.Err() != nil {
		return context.Cause(term)
	}
	taken = max(0, min(taken, len(events)))
	if taken > 0 {
		done := letters{batch.ids[:taken], batch.at[:taken]}
		if err := l.fenced(ctx, func(tx pgx.Tx) error { return l.markReplayed(ctx, tx, done.ids) }); err != nil {
			return err
		}
		l.replayed(done)
	}
	if taken == len(events) {
		if failure != nil {
			l.log.Warn("a publisher took all events but returned an error", "error", failure)
		}
		return nil
	}
	if failure == nil {
		failure = fmt.Errorf("only %d of %d events were taken", taken, len(events))
	}
	return l.replayFailed(ctx, letters{batch.ids[taken:], batch.at[taken:]}, faultOf(failure))
}

// markReplayed marks dead letters as replayed. If an operator has dismissed one, or a rewind
// has removed it, none counts.
func (l *loop) markReplayed(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if err := l.holdClaim(ctx, tx); err != nil {
		return err
	}
	marked, err := tx.Exec(ctx, l.tables.SQL(markReplayed), ids)
	if err == nil && marked.RowsAffected() < int64(len(ids)) {
		err = errMoved
	}
	return err
}

// holdClaim locks the processor's row for this term until the transaction ends: others
// wait for its outcome.
func (l *loop) holdClaim(ctx context.Context, tx pgx.Tx) error {
	held, err := tx.Exec(ctx, l.tables.SQL(holdClaim), l.claimArgs()...)
	if err == nil && held.RowsAffected() == 0 {
		err = errMoved
	}
	return err
}

// maxReplayFaults is how many consecutive database errors are tolerated in the
// replay of a dead letter.
const maxReplayFaults = 10

// replayFailed decides the next step after a failure. The events of a batch are repeated
// one at a time. A single event is repeated after a pause if the database is to blame. New
// events do not wait.
func (l *loop) replayFailed(ctx context.Context, batch letters, failure error) error {
	var fault *databaseError
	var panicked *panicError
	first, last := batch.at[0], batch.at[len(batch.at)-1]
	switch l.replays.faults++; {
	case len(batch.ids) > 1:
		l.replays.oneByOneUntil, l.replays.faults = last, 0
		l.log.Warn("replaying dead letters failed", "events", len(batch.ids), "first", first, "error", failure)
		if !errors.As(failure, &panicked) {
			return nil
		}
		return l.fenced(ctx, func(tx pgx.Tx) error { return l.countPanic(ctx, tx, failure) })
	case errors.As(failure, &fault) && l.replays.faults < maxReplayFaults:
		delay := l.replays.delay.next(l.config.PollInterval, l.config.MaxPollInterval)
		l.replays.pausedUntil = time.Now().Add(delay)
		l.log.Warn("replaying a dead letter failed", "event", first, "again_in", delay, "error", failure)
		return nil
	}
	l.log.Warn("replaying a dead letter failed", "event", first, "error", failure)
	err := l.recordReplayFailed(ctx, batch, failure)
	if err == nil {
		l.replays.passed(last)
	}
	return err
}

// recordReplayFailed keeps dead letters and records the error.
func (l *loop) recordReplayFailed(ctx context.Context, batch letters, failure error) error {
	return l.fenced(ctx, func(tx pgx.Tx) error {
		if err := l.holdClaim(ctx, tx); err != nil {
			return err
		}
		if err := l.countPanic(ctx, tx, failure); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.tables.SQL(replayFailed), batch.ids, printable.Clip(failure.Error(), maxError), l.term.Number())
		return err
	})
}

// find reads events by their cursors.
func (r *reader) find(ctx context.Context, at []Cursor) ([]Event, error) {
	transactions, positions := make([]string, len(at)), make([]int64, len(at))
	for i, c := range at {
		transactions[i], positions[i] = fmt.Sprint(c.Transaction), c.Position
	}
	n := len(r.log.args)
	args := append([]any{pgx.QueryExecModeCacheDescribe, pgx.QueryResultFormats{pgx.BinaryFormatCode}}, r.log.args...)
	rows, err := r.database.Query(ctx, fmt.Sprintf(findEvents, r.log.query, n+1, n+2), append(args, transactions, positions)...)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	events, err := decode(rows, len(at))
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	return events, nil
}
