package processor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// loop runs a processor in one term. It is used by one goroutine.
type loop struct {
	config   Config
	node     *tenure.Node
	database Database
	held     *pgxpool.Conn // for the batch, or nil
	tables   schema.Tables
	term     *tenure.Term
	reader   *reader
	tail     *tail // of the log, for all processors of the group
	states   *states
	log      *slog.Logger
	wake     signals
	inserts  *lastSignal
	changes  *lastSignal
	skipping time.Duration // how long progress over unselected events may stay unsaved

	state          state
	begun          bool      // this term has claimed the processor
	seen           since     // what the next read must see
	outcomeUnknown bool      // the outcome of a commit is unknown
	stateKnown     bool      // state matches the database except for unsaved progress
	readAt         time.Time // when state was read
	shared         bool      // the next read of the state may be one for all processors of the group
	changed        time.Time // it must have begun after this time
	wrote          time.Time // and after this one, the end of the last transaction
	ahead          *ahead    // the read of the next batch, or nil
	oneByOne       bool      // handle one event at a time to find the failing one
	oneByOneUntil  Cursor    // end of the failed batch
	gauge          gauge
	unsaved

	lastServers *sync.Map // of the group: the server on which each processor last ran in this process
	trouble     *trouble  // of the group
	refusal     string    // last logged reason why the processor cannot begin
	searched    Cursor    // up to where the log was searched for the time of a new processor's start
	replays
}

// unsaved is progress not yet in the database.
type unsaved struct {
	cursor Cursor
	events int
	since  time.Time // zero if there is none
}

// state is the processor's row as it was last read.
type state struct {
	ownedByTerm     bool // it is this term's
	status          string
	busy            bool // a batch may be in flight
	epoch           int64
	cursor          Cursor
	generation      int64
	rebuild         bool
	replay          bool // a replay of dead letters was requested
	stuck           bool // the row says that the processor cannot work
	errors          int
	countedAttempts int           // how many of them count as attempts at an event
	pause           time.Duration // until the next attempt
}

// The statuses of processors.
const (
	Active = "active"
	Paused = "paused" // by an operator
	Failed = "failed" // after too many failed attempts
)

// run runs the processor until the term ends or is stopping. It logs database
// errors and retries.
func (l *loop) run(ctx context.Context) {
	defer func() { l.ahead.take(Cursor{}, 0) }()
	var idle, errorDelay pause
	var stalledAt time.Time
	for !l.finished(ctx) {
		limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout+l.trustWindow())
		began := time.Now()
		var next stepResult
		var err error
		if !l.begun {
			err = l.begin(limited)
			l.begun = err == nil
		}
		if l.begun {
			next, err = l.step(ctx, limited)
		}
		cancel()
		if err != nil {
			l.stateKnown, l.shared = false, false // reread where to continue
			if errors.Is(err, errMoved) {
				l.log.Info("rereading the cursor", "reason", err)
				continue
			}
			l.reportError(ctx, err, time.Since(began))
			l.trouble.failed(ctx, l, began)
			l.wait(ctx, errorDelay.next(l.config.PollInterval, l.config.MaxPollInterval), nil, nil)
			continue
		}
		errorDelay = 0
		l.trouble.worked(l)
		l.reportWork(ctx, next)
		if next.why != horizon {
			stalledAt = time.Time{}
		}
		switch next.why {
		case none:
			idle = 0
		case nothingNew:
			// Events are handled without rereading the row: handling them detects a
			// change by an operator.
			l.gauge.rest(true)
			l.wait(ctx, idle.next(l.config.PollInterval, l.config.MaxPollInterval), l.wake.changed, l.wake.inserted)
			l.gauge.rest(false)
		case horizon:
			if stalledAt.IsZero() {
				stalledAt = time.Now()
			}
			l.wait(ctx, min(doorbell.Pause(time.Since(stalledAt), horizonPause), l.config.PollInterval), l.wake.changed, l.wake.inserted)
		case suspended:
			l.stateKnown = false
			l.wait(ctx, idle.next(l.config.PollInterval, l.config.MaxPollInterval), l.wake.changed, nil)
		case delayed:
			l.stateKnown = false
			// An operator may end the pause, and the notification of it can be lost.
			l.wait(ctx, min(next.pause, l.config.MaxPollInterval), l.wake.changed, nil)
		}
	}
	if ctx.Err() == nil {
		l.leave(ctx)
	}
}

// leave saves the progress in a stopping term.
func (l *loop) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.trustWindow())
	defer cancel()
	err := l.resolveOutcome(ctx)
	if err == nil {
		err = l.save(ctx)
	}
	if err == nil {
		err = l.setBusy(ctx, false)
	}
	if err != nil {
		l.log.Warn("saving the progress at the end of the term failed", "error", err)
	}
}

// finished reports whether the loop should return.
func (l *loop) finished(ctx context.Context) bool {
	return ctx.Err() != nil || wakeup.Closed(l.term.Stopping())
}

// wait waits for d or for a signal on one of the channels.
func (l *loop) wait(ctx context.Context, d time.Duration, changed, inserted <-chan struct{}) {
	began := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		l.seen, l.changed, l.shared = since{committed: began}, began, true
	case <-changed:
		l.changed, l.shared, l.stateKnown = l.changes.time(), true, false
	case <-inserted:
	case <-l.term.Stopping():
	case <-ctx.Done():
	}
}

// step handles one batch or one request of an operator, and returns how long to wait. term
// is the context of the term. It outlives ctx, the context of the step.
func (l *loop) step(term, ctx context.Context) (stepResult, error) {
	if err := l.refreshState(ctx); err != nil {
		return stepResult{}, err
	}
	replaying := l.state.replay && time.Now().After(l.replays.pausedUntil)
	switch {
	case l.state.rebuild && l.state.pause <= 0:
		return stepResult{}, l.rebuild(term, ctx)
	case l.state.status != Active:
		return stepResult{why: suspended}, l.setBusy(ctx, false)
	case l.state.pause > 0 && !replaying:
		return stepResult{delayed, l.state.pause}, nil
	}
	if err := l.setBusy(ctx, true); err != nil {
		return stepResult{}, err
	}
	// Live events and replays take turns: neither waits for more than a batch. Then the
	// loop does not rest.
	if recent := time.Now().Add(-l.config.PollInterval); replaying && l.seen.committed.Before(recent) {
		l.seen = since{committed: recent}
	}
	if l.replays.turn = replaying && (!l.replays.turn || l.state.pause > 0); l.replays.turn {
		return stepResult{}, l.replay(term, ctx)
	}
	next, err := l.stepBatch(term, ctx)
	if replaying {
		next.why = none
	}
	return next, err
}

// refreshState rereads the processor's row if it is not known or too old.
func (l *loop) refreshState(ctx context.Context) error {
	if err := l.resolveOutcome(ctx); err != nil {
		return err
	}
	// A change by an operator ends the wait; only the notification of it can be lost.
	if l.stateKnown && time.Since(l.readAt) <= 2*l.config.MaxPollInterval {
		return nil
	}
	if l.events > 0 || time.Since(l.since) >= l.skipping {
		if err := l.save(ctx); err != nil {
			return err
		}
	}
	if shared := l.shared; shared {
		l.shared = false
		return l.readShared(ctx)
	}
	return l.readState(ctx)
}

// stepBatch reads a batch, and handles or publishes it.
func (l *loop) stepBatch(term, ctx context.Context) (stepResult, error) {
	limit := l.config.BatchSize
	if l.state.errors > 0 {
		limit = 1
	}
	if l.oneByOne = l.oneByOne && l.currentCursor().Before(l.oneByOneUntil); l.oneByOne {
		limit = 1
	}
	r, err := l.read(ctx, limit)
	defer l.release()
	events, scanned := r.events, r.scanned
	if err != nil {
		return stepResult{}, err
	}
	if len(events) == 0 {
		l.release()
		return l.handleEmptyRead(ctx, r)
	}
	if len(events) == limit && limit > 1 && !l.tail.covers(scanned) {
		l.ahead = readAhead(term, l.reader, scanned, limit, l.trustWindow())
	}
	if l.config.Handle != nil {
		return stepResult{}, l.handle(term, ctx, events)
	}
	err = l.publish(term, ctx, events)
	if err == nil && len(events) < limit {
		err = l.save(ctx)
	}
	return stepResult{}, err
}

// read returns the next events and the cursor of the end of the read.
func (l *loop) read(ctx context.Context, limit int) (r tailRead, err error) {
	after := l.currentCursor()
	events, scanned, fits := l.ahead.take(after, limit)
	l.ahead = nil
	if fits {
		l.tail.looked(true)
		return tailRead{events: events, scanned: scanned}, nil
	}
	// Holding a connection here could take the only connection from another processor's
	// read.
	if heard := l.inserts.time(); l.seen.committed.Before(heard) {
		l.seen = since{heard, true}
	}
	if r, err = l.tail.next(ctx, after, limit, l.config, l.seen); err != nil || r.fits {
		return r, err
	}
	if err := l.hold(ctx); err != nil {
		return r, err
	}
	began := time.Now()
	r.events, r.scanned, err = l.reader.next(ctx, l.connection(), after, limit)
	if err != nil {
		return r, err
	}
	if l.tail.looked(r.scanned != after); r.scanned == after {
		l.tail.join(after, began)
	}
	return r, nil
}

// handleEmptyRead continues after a read without selected events.
func (l *loop) handleEmptyRead(ctx context.Context, r tailRead) (stepResult, error) {
	scanned, more := r.scanned, r.more
	if l.events > 0 {
		if err := l.save(ctx); err != nil {
			return stepResult{}, err
		}
	}
	if l.currentCursor().Before(scanned) {
		return stepResult{}, l.skipTo(ctx, scanned)
	}
	if !r.fits {
		var err error
		if more, err = l.reader.more(ctx, scanned); err != nil {
			return stepResult{}, err
		}
	}
	switch {
	case more:
		return stepResult{why: horizon}, nil
	default:
		l.gauge.sawNothing()
		return stepResult{why: nothingNew}, nil
	}
}

// currentCursor returns the cursor up to which events were handled.
func (l *loop) currentCursor() Cursor {
	if !l.since.IsZero() {
		return l.unsaved.cursor
	}
	return l.state.cursor
}
