package processor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// loop is a processor at work under one term. One goroutine runs it.
type loop struct {
	config   Config
	node     *tenure.Node
	database Database
	backend  *postgres.Backend
	term     *tenure.Term
	reader   reader
	log      *slog.Logger
	wake     <-chan struct{} // something may have changed

	state  state
	known  bool   // state is that of the database, but for the own progress
	busy   bool   // the database knows that a batch may be in flight
	single bool   // one event at a time, to find the one that fails
	until  Cursor // the end of the batch that failed
	blamed int    // attempts that failed in a row by the fault of an event
	unsaved
}

// unsaved is progress that the database does not know of yet.
type unsaved struct {
	cursor Cursor
	events int
	since  time.Time
}

// state is the row of the processor as it was read last.
type state struct {
	status     string
	cursor     Cursor
	generation int64
	rebuild    bool
	errors     int
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
	pause := l.config.PollInterval
	for begun := false; !l.over(ctx); {
		var next time.Duration
		var err error
		limited, cancel := context.WithTimeout(ctx, l.config.HandleTimeout+l.window())
		if !begun {
			err = l.begin(limited)
			begun = err == nil
		}
		if begun {
			next, err = l.step(limited)
		}
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.log.Warn("processing failed", "error", err)
			l.unsaved = unsaved{} // the database says where to go on
			l.known = false
			l.wait(ctx, l.config.PollInterval)
		case next == idle:
			l.known = false
			l.wait(ctx, pause)
			pause = min(2*pause, l.config.MaxPollInterval)
		case next > 0:
			l.known = false
			l.wait(ctx, next)
		default:
			pause = l.config.PollInterval
		}
	}
	if ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, l.window())
		defer cancel()
		err := l.save(limited)
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

// wait waits for d, or until something may have changed.
func (l *loop) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	case <-l.term.Stopping():
	case <-ctx.Done():
	}
}

// idle is the pause of a loop that has nothing to do.
const idle = time.Duration(-1)

// horizonPause is how soon to look again for events that wait for older
// transactions to end.
const horizonPause = 5 * time.Millisecond

// begin takes the processor over.
func (l *loop) begin(ctx context.Context) error {
	if _, err := l.database.Exec(ctx, l.backend.SQL(addProcessor), l.config.Name, l.config.Kind, l.term.Role().Name(),
		l.config.Reset != nil || l.config.Publish != nil); err != nil {
		return fmt.Errorf("adding the processor: %w", err)
	}
	if err := l.checkLog(ctx); err != nil {
		return err
	}
	l.busy = true
	return l.fenced(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.backend.SQL(endForerunners), l.key()); err != nil {
			return fmt.Errorf("ending transactions of earlier terms: %w", err)
		}
		_, err := tx.Exec(ctx, l.backend.SQL(claimProcessor), l.config.Name, l.term.Number(), l.node.ID(), l.node.Name())
		return err
	})
}

// step does one batch, or what somebody has asked for, and returns how long to
// wait after it.
func (l *loop) step(ctx context.Context) (time.Duration, error) {
	if !l.known {
		if err := l.save(ctx); err != nil {
			return 0, err
		}
		if err := l.readState(ctx); err != nil {
			return 0, err
		}
	}
	switch {
	case l.state.rebuild:
		return 0, l.rebuild(ctx)
	case l.state.status != Active:
		return idle, l.setBusy(ctx, false)
	case l.state.pause > 0:
		return l.state.pause, nil
	}
	if err := l.setBusy(ctx, true); err != nil {
		return 0, err
	}
	limit := l.config.BatchSize
	if l.state.errors > 0 {
		limit = 1
	}
	if l.single = l.single && l.at().Before(l.until); l.single {
		limit = 1
	}
	found, err := l.reader.read(ctx, l.at(), limit)
	if err != nil {
		return 0, err
	}
	if len(found.events) == 0 {
		err = l.save(ctx)
		if err == nil && l.state.cursor.Before(found.scanned) {
			err = l.skipTo(ctx, found.scanned)
		}
		if found.waiting {
			return horizonPause, err
		}
		return idle, err
	}
	if l.config.Handle != nil {
		return 0, l.handle(ctx, found.events)
	}
	err = l.publish(ctx, found.events)
	if err == nil && len(found.events) < limit {
		err = l.save(ctx)
	}
	return 0, err
}

// at is the place up to which events were handled.
func (l *loop) at() Cursor {
	if l.events > 0 {
		return l.unsaved.cursor
	}
	return l.state.cursor
}
