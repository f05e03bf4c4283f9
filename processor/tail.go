package processor

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/wakeup"
)

// Limits of a tail's contents.
const (
	minTailRead = 100 // rows that one look reads
	maxTailRead = 1000
	maxTailSize = 16 << 20 // bytes of data
	tailReads   = 4        // how many full looks are kept
)

// tail is the end of a log for all its readers in a group. A look reads the rows after the
// last one: each row is read once, and not once for each processor. A processor further
// behind reads the log without the tail. It is safe for concurrent use.
type tail struct {
	reader  *reader
	limit   int           // how many rows a look reads
	bound   time.Duration // of a look
	loops   []signals     // of the processors
	looked  func(bool)    // is called with whether a look has found rows
	looking chan struct{} // has one element while a look runs

	mu         sync.Mutex
	known      bool      // begin and end are set
	begin, end Cursor    // rows are all selected ones after begin, up to end
	rows       []Event   // read-only
	size       int       // bytes of data in rows
	lookedAt   time.Time // when the last look began
	settled    bool      // the last look found no row after end that can be read
	more       bool      // it found rows that wait for the horizon
	full       bool      // the last look read as many rows as it may
}

// newTails returns the tails of the logs of configurations, by their index.
func newTails(database Database, configs []Config, loops []signals, bound time.Duration, looked func(bool)) []*tail {
	tails := make([]*tail, len(configs))
	for i, c := range configs {
		if tails[i] != nil {
			continue
		}
		selection, columns, limit := c.Selection, noContents, minTailRead
		shared := &tail{bound: bound, looked: looked, looking: make(chan struct{}, 1)}
		for j := i; j < len(configs); j++ {
			other := configs[j]
			if other.Log.query != c.Log.query || !reflect.DeepEqual(other.Log.args, c.Log.args) {
				continue
			}
			tails[j] = shared
			shared.loops = append(shared.loops, loops[j])
			limit = max(limit, other.BatchSize)
			if !other.CursorsOnly || other.Selection.readsTags() {
				columns = contents
			}
			if !reflect.DeepEqual(other.Selection, selection) {
				selection = Selection{}
			}
		}
		shared.limit = min(limit, maxTailRead)
		shared.reader = newReader(database, c.Log, selection, columns)
	}
	return tails
}

// join makes a cursor known, after a read begun at a given time found nothing behind it.
func (t *tail) join(at Cursor, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known && !t.end.Before(at) {
		return
	}
	t.forget()
	t.known, t.begin, t.end, t.lookedAt, t.settled = true, at, at, began, false
}

func (t *tail) forget() {
	t.known, t.rows, t.size, t.full = false, nil, 0, false
}

// covers reports whether rows after a cursor need not be read by the processor.
func (t *tail) covers(after Cursor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.coversLocked(after)
}

func (t *tail) coversLocked(after Cursor) bool {
	switch {
	case !t.known || after.Before(t.begin) || t.end.Before(after):
		return false
	case after == t.end && t.full && len(t.loops) == 1:
		return false // it reads ahead while it handles a batch
	}
	return true
}

// tailRead is the result of a read of a log or its tail.
type tailRead struct {
	events  []Event
	scanned Cursor
	more    bool // rows wait for the horizon
	fits    bool // the tail has the rows
}

// since describes the rows a read must see.
type since struct {
	committed time.Time // rows that were committed before
	notified  bool      // a notification said that there are some
}

// next returns the next selected events after a cursor, and up to where it read.
func (t *tail) next(ctx context.Context, after Cursor, limit int, config Config, seen since) (tailRead, error) {
	for {
		r, look := t.buffered(after, limit, config, seen.committed)
		if !look {
			return r, nil
		}
		if err := t.look(ctx, after, seen); err != nil {
			return tailRead{}, err
		}
	}
}

// buffered returns the known events, or the need of a look.
func (t *tail) buffered(after Cursor, limit int, config Config, committed time.Time) (r tailRead, look bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.coversLocked(after) {
		return tailRead{}, false
	}
	if after == t.end {
		if !t.settled || t.lookedAt.Before(committed) {
			return tailRead{}, true
		}
		return tailRead{scanned: after, more: t.more, fits: true}, false
	}
	first, found := slices.BinarySearchFunc(t.rows, after, func(e Event, c Cursor) int { return e.Cursor.compare(c) })
	if found {
		first++
	}
	r = tailRead{scanned: t.end, fits: true}
	for i := first; i < len(t.rows); i++ {
		if !config.Selection.matches(&t.rows[i]) {
			continue
		}
		r.events = append(r.events, copied(&t.rows[i], config.CursorsOnly))
		if len(r.events) == limit {
			r.scanned = t.rows[i].Cursor
			break
		}
	}
	return r, false
}

// copied returns a copy of an event for a handler to change.
func copied(e *Event, cursorOnly bool) Event {
	if cursorOnly {
		return Event{Cursor: e.Cursor, Type: e.Type}
	}
	c := *e
	c.Tags, c.Data = slices.Clone(e.Tags), slices.Clone(e.Data)
	return c
}

// look reads the rows after the last one, unless another call did so since. If the tail
// cannot read them, it forgets its rows: one processor's rows must not hold back
// another's, and each reads without the tail.
func (t *tail) look(ctx context.Context, after Cursor, seen since) error {
	select {
	case t.looking <- struct{}{}:
		defer func() { <-t.looking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	end, old := t.end, t.lookedAt.Before(seen.committed)
	needed := t.known && after == end && (!t.settled || old)
	notified := seen.notified && old && t.settled && !t.more
	t.mu.Unlock()
	if !needed {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, t.bound)
	defer cancel()
	began := time.Now()
	events, scanned, more, err := t.readAfter(limited, end, notified)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookedAt, t.settled, t.more = began, scanned == end, more
	if err != nil {
		t.forget()
		return nil
	}
	t.looked(scanned != end)
	if scanned == end {
		t.full = false
		return nil
	}
	t.add(events, scanned)
	for _, l := range t.loops {
		wakeup.Send(l.inserted)
	}
	return nil
}

// readAfter reads the rows after a cursor. A look without a notification first checks
// whether there are any, with a statement that also sees rows behind the horizon.
func (t *tail) readAfter(ctx context.Context, end Cursor, notified bool) (events []Event, scanned Cursor, more bool, err error) {
	if !notified {
		if more, err = t.reader.more(ctx, end); err != nil || !more {
			return nil, end, false, err
		}
	}
	events, scanned, err = t.reader.next(ctx, t.reader.database, end, t.limit)
	if err == nil && scanned == end && notified {
		more, err = t.reader.more(ctx, end)
	}
	return events, scanned, more, err
}

// add appends rows and removes the first ones beyond the limits.
func (t *tail) add(events []Event, scanned Cursor) {
	t.full = len(events) == t.limit
	t.rows, t.end = append(t.rows, events...), scanned
	for i := range events {
		t.size += len(events[i].Data)
	}
	excess := 0
	for excess < len(t.rows)-len(events) && (len(t.rows)-excess > tailReads*t.limit || t.size > maxTailSize) {
		t.size -= len(t.rows[excess].Data)
		excess++
	}
	if excess > 0 {
		t.begin = t.rows[excess-1].Cursor
		t.rows = slices.Clone(t.rows[excess:])
	}
}
