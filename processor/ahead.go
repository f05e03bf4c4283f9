package processor

import (
	"context"
	"time"
)

// ahead reads the next batch on another connection while one is in flight. Events never
// change, so the result can be used if it begins at the right cursor.
type ahead struct {
	after  Cursor
	limit  int
	cancel context.CancelFunc
	done   chan struct{} // closed when the result is set

	events  []Event
	scanned Cursor
	err     error
}

// readAhead starts to read the events after a cursor.
func readAhead(ctx context.Context, r *reader, after Cursor, limit int, bound time.Duration) *ahead {
	ctx, cancel := context.WithTimeout(ctx, bound)
	a := &ahead{after: after, limit: limit, cancel: cancel, done: make(chan struct{})}
	go func() { // exits when the read ends, within bound; take waits for it
		defer close(a.done)
		a.events, a.scanned, a.err = r.next(ctx, r.database, after, limit)
	}()
	return a
}

// take waits for the result and returns it if it fits. Otherwise it cancels the
// read. It may be called on nil.
func (a *ahead) take(after Cursor, limit int) (events []Event, scanned Cursor, fits bool) {
	if a == nil {
		return nil, after, false
	}
	fits = a.after == after && a.limit == limit
	if !fits {
		a.cancel()
	}
	<-a.done
	a.cancel()
	// Events may have been appended since.
	return a.events, a.scanned, fits && a.err == nil && len(a.events) > 0
}
