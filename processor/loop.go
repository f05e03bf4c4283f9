package processor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/schema"
)

// loop is a processor at work under one term. One goroutine runs it.
type loop struct {
	config   Config
	node     *tenure.Node
	database Database
	tables   schema.Tables
	term     *tenure.Term
	reader   *reader
	log      *slog.Logger
	wake     signals

	state  state
	begun  bool      // the processor is this term's
	doubt  bool      // it is not known whether a transaction has committed
	known  bool      // state is that of the database, but for the own progress
	readAt time.Time // when it was read
	ahead  *ahead    // nil, or the reading of the next batch
	busy   bool      // the database knows that a batch may be in flight
	single bool      // one event at a time, to find the one that fails
	until  Cursor    // the end of the batch that failed
	gauge  gauge
	unsaved

	lineages     *sync.Map // of the group: the server on which each processor ran last in this process
	refusal      string    // what was logged last of another role that has the processor
	replayFaults int       // attempts in a row at a dead letter that the database spoiled
}

// unsaved is progress that the database does not know of yet.
type unsaved struct {
	cursor Cursor
	events int
	since  time.Time // zero if there is none
}

// state is the row of the processor as it was read last.
type state struct {
	ours       bool // it is this term's
	status     string
	epoch      int64
	cursor     Cursor
	generation int64
	rebuild    bool
	replay     bool // dead letters wait to be replayed
	errors     int
	blamed     int           // how many of them count as attempts at an event
	pause      time.Duration // until the next attempt
}

// The statuses of processors.
const (
	Active = "active"
	Paused = "paused" // by somebody
	Failed = "failed" // by too many attempts
)

// run works until the term ends or is asked to. Errors of the database are
// logged and tried again: what else could a leader do.
func (l *loop) run(ctx context.Context) {
	defer func() { l.ahead.take(Cursor{}, 0) }()
	var idle, stalled, trouble pause
	for !l.over(ctx) {
		limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout+l.window())
		var next rest
		var err error
		if !l.begun {
			err = l.begin(limited)
			l.begun = err == nil
		}
		if l.begun {
			next, err = l.step(ctx, limited)
		}
		cancel()
		if errors.Is(err, errMoved) {
			l.log.Info("going on elsewhere", "reason", err)
			l.known = false
			continue
		}
		if err != nil {
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, ErrOwned):
				l.refused(ctx, err)
			default:
				l.log.Warn("processing failed", "error", err)
			}
			l.known = false // the database says where to go on
			l.wait(ctx, trouble.next(l.config.PollInterval, l.config.MaxPollInterval), nil, nil)
			continue
		}
		trouble = 0
		switch next.why {
		case none:
			idle, stalled = 0, 0
		case nothingNew:
			// What was inserted is handled without asking whether somebody has
			// changed the processor: handling it shows that.
			l.known = l.wait(ctx, idle.next(l.config.PollInterval, l.config.MaxPollInterval), l.wake.changed, l.wake.inserted)
		case horizon:
			l.wait(ctx, stalled.next(horizonPause, l.config.PollInterval), l.wake.changed, l.wake.inserted)
		case suspended:
			l.known = false
			l.wait(ctx, idle.next(l.config.PollInterval, l.config.MaxPollInterval), l.wake.changed, nil)
		case delayed:
			l.known = false
			// Somebody may end the pause, and news of that can be lost.
			l.wait(ctx, min(next.pause, l.config.MaxPollInterval), l.wake.changed, nil)
		}
	}
	if ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, l.window())
		defer cancel()
		err := l.settle(limited)
		if err == nil {
			err = l.save(limited)
		}
		if err == nil {
			err = l.setBusy(limited, false)
		}
		if err != nil {
			l.log.Warn("saving the progress at the end of the term failed", "error", err)
		}
	}
}

// over reports whether the loop should return.
func (l *loop) over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-l.term.Stopping():
		return true
	default:
		return false
	}
}

// wait waits for d, or until one of the channels tells that something may have
// changed or was inserted, and reports whether it was the latter.
func (l *loop) wait(ctx context.Context, d time.Duration, changed, inserted <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-inserted:
		return true
	case <-l.term.Stopping():
	case <-ctx.Done():
	}
	return false
}

// step does one batch, or what somebody has asked for, and returns how long to
// wait after it. The context of the term goes on after the step's.
func (l *loop) step(term, ctx context.Context) (rest, error) {
	if err := l.settle(ctx); err != nil {
		return rest{}, err
	}
	if !l.known || time.Since(l.readAt) > l.config.MaxPollInterval {
		if err := l.save(ctx); err != nil {
			return rest{}, err
		}
		if err := l.readState(ctx); err != nil {
			return rest{}, err
		}
	}
	switch {
	case l.state.rebuild && l.state.pause <= 0:
		return rest{}, l.rebuild(ctx)
	case l.state.status != Active:
		return rest{why: suspended}, errors.Join(l.setBusy(ctx, false), l.measure(ctx))
	case l.state.pause > 0 && !l.state.replay:
		return rest{delayed, l.state.pause}, l.measure(ctx)
	}
	if err := l.setBusy(ctx, true); err != nil {
		return rest{}, err
	}
	if l.state.replay {
		return rest{}, l.replay(ctx)
	}
	limit := l.config.BatchSize
	if l.state.errors > 0 {
		limit = 1
	}
	if l.single = l.single && l.at().Before(l.until); l.single {
		limit = 1
	}
	events, scanned, err := l.read(ctx, limit)
	if err != nil {
		return rest{}, err
	}
	if len(events) == 0 {
		return l.nothing(ctx, scanned)
	}
	if len(events) == limit {
		if err := l.measure(ctx); err != nil {
			return rest{}, err
		}
	}
	if len(events) == limit && limit > 1 {
		l.ahead = readAhead(term, l.reader, scanned, limit, l.window())
	}
	if l.config.Handle != nil {
		return rest{}, l.handle(ctx, events)
	}
	err = l.publish(ctx, events)
	if err == nil && len(events) < limit {
		err = l.save(ctx)
	}
	return rest{}, err
}

// read returns the next events and up to where everything was looked at.
func (l *loop) read(ctx context.Context, limit int) ([]Event, Cursor, error) {
	events, scanned, fits := l.ahead.take(l.at(), limit)
	l.ahead = nil
	if fits {
		return events, scanned, nil
	}
	return l.reader.next(ctx, l.at(), limit)
}

// nothing goes on behind rows of which none was selected.
func (l *loop) nothing(ctx context.Context, scanned Cursor) (rest, error) {
	if l.events > 0 {
		if err := l.save(ctx); err != nil {
			return rest{}, err
		}
	}
	if l.at().Before(scanned) {
		return rest{}, l.skipTo(ctx, scanned)
	}
	more, err := l.reader.more(ctx, scanned)
	switch {
	case err != nil:
		return rest{}, err
	case more:
		return rest{why: horizon}, l.measure(ctx)
	default:
		return rest{why: nothingNew}, l.caughtUp(ctx)
	}
}

// at is the place up to which events were handled.
func (l *loop) at() Cursor {
	if !l.since.IsZero() {
		return l.unsaved.cursor
	}
	return l.state.cursor
}
