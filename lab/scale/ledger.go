package main

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/processor"
)

// ledger has the times at which numbered events were committed and handled. It is safe
// for concurrent use.
type ledger struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	committed, handled time.Time
	done               chan struct{} // closed when it was handled
}

func newLedger() *ledger { return &ledger{} }

// begin returns the number of the next event, and what to call with the time of its commit.
func (l *ledger) begin() (number int, committed func(time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number = len(l.entries)
	l.entries = append(l.entries, entry{done: make(chan struct{})})
	return number, func(at time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries[number].committed = at
	}
}

func (l *ledger) handled(number int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[number].done
}

func (l *ledger) handle(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, event := range batch {
		number, err := strconv.Atoi(string(event.Data))
		if err != nil || number >= len(l.entries) || !l.entries[number].handled.IsZero() {
			continue
		}
		l.entries[number].handled = now
		close(l.entries[number].done)
	}
	return nil
}

// delays returns how long after it could be read each event since a number was handled,
// sorted. An event that was committed while a transaction was open can be read after that.
func (l *ledger) delays(since int, open []interval) (all []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries[since:] {
		if e.committed.IsZero() || e.handled.IsZero() {
			continue
		}
		readable := e.committed
		for _, i := range open {
			if i.begin.Before(readable) && readable.Before(i.end) {
				readable = i.end
			}
		}
		all = append(all, max(0, e.handled.Sub(readable)))
	}
	slices.Sort(all)
	return all
}

// interval is the time during which a transaction was open.
type interval struct{ begin, end time.Time }
