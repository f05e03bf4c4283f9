package dashboard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/history"
)

// The bounds on reading them.
const (
	timelineTimeout = 20 * time.Second
	timelineRest    = 3 * time.Second // the pause after a failure
)

// timelines are the histories of the last viewed roles. Each is read once and then
// updated by the watch: viewing it again costs the database nothing. It is safe for
// concurrent use.
type timelines struct {
	backend historyReader
	turn    chan struct{} // to read, one after another: the watch reads in between

	mu      sync.Mutex
	loaded  map[string]*timeline
	touched uint64 // number of uses of all timelines
}

func newTimelines(backend historyReader) *timelines {
	return &timelines{backend: backend, turn: make(chan struct{}, 1), loaded: map[string]*timeline{}}
}

func newTimeline() *timeline {
	return &timeline{ready: make(chan struct{}), reading: true, index: map[uuid.UUID]int32{}, textAt: map[string]int32{}}
}

// of returns the history of a role, and reads it if necessary. After a failure it is
// read again only after a pause, however many requests there are.
func (t *timelines) of(ctx context.Context, role string) (*timeline, error) {
	t.mu.Lock()
	line := t.loaded[role]
	mine := line == nil || line.isStale(time.Now())
	if mine {
		line = newTimeline()
		t.loaded[role] = line
	}
	t.touched++
	line.touched = t.touched
	t.mu.Unlock()
	if mine {
		// Other requests wait for it too: it does not end with the first request.
		t.read(context.WithoutCancel(ctx), line, role)
		t.makeRoom()
	}
	select {
	case <-line.ready:
		return line, line.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read reads the history of a role when it is its turn.
func (t *timelines) read(ctx context.Context, line *timeline, role string) {
	ctx, cancel := context.WithTimeout(ctx, timelineTimeout)
	defer cancel()
	select {
	case t.turn <- struct{}{}:
		terms, err := readTerms(ctx, t.backend, role)
		<-t.turn
		line.fill(terms, err)
	case <-ctx.Done():
		line.fill(nil, context.Cause(ctx))
	}
}

// readTerms reads the terms of a role in parts: the watch uses the same connection, and
// must not wait for long.
func readTerms(ctx context.Context, backend historyReader, role string) (terms []history.Term, err error) {
	query := history.Query{Role: role, Limit: timelinePart}
	for len(terms) < maxTimelineTerms {
		part, err := backend.History(ctx, query)
		if err != nil {
			return nil, err
		}
		for len(terms) > 0 && terms[len(terms)-1].Began.Equal(query.Until) { // they were returned again
			terms = terms[:len(terms)-1]
		}
		terms = append(terms, part...)
		if len(part) < query.Limit {
			break
		}
		oldest := part[len(part)-1].Began
		if oldest.Equal(query.Until) { // all began at the same time
			query.Limit *= 2
		}
		query.Until = oldest
	}
	slices.SortStableFunc(terms, func(a, b history.Term) int { return cmp.Compare(a.Term, b.Term) })
	return terms[max(0, len(terms)-maxTimelineTerms):], nil
}

// historyReader reads terms, as a *postgres.Backend does.
type historyReader interface {
	History(ctx context.Context, query history.Query) ([]history.Term, error)
}

// makeRoom removes the least recently used timelines.
func (t *timelines) makeRoom() {
	t.mu.Lock()
	defer t.mu.Unlock()
	roles := slices.SortedFunc(maps.Keys(t.loaded), func(a, b string) int {
		return cmp.Compare(t.loaded[b].touched, t.loaded[a].touched)
	})
	total := 0
	for i, role := range roles {
		total += t.loaded[role].size()
		if i > 0 && (i >= maxTimelines || total > maxAllTerms) {
			delete(t.loaded, role)
		}
	}
}

// clear removes all timelines: their terms no longer exist in the database.
func (t *timelines) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.loaded)
}

// follow adds the newly read terms of the watch.
func (t *timelines) follow(terms []history.Term) {
	t.mu.Lock()
	lines := maps.Clone(t.loaded)
	t.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	for _, term := range terms {
		if line := lines[term.Role]; line != nil {
			line.follow(term)
		}
	}
}

// fill sets the result of reading a history, and wakes the waiting requests.
func (l *timeline) fill(terms []history.Term, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(l.ready)
	l.reading = false
	if err != nil {
		l.err, l.failed = err, time.Now()
		return
	}
	showableTerms(terms)
	l.spans = make([]span, 0, len(terms)+16)
	for _, term := range append(terms, l.pending...) {
		l.add(term)
	}
	l.pending = nil
}

// isStale reports whether a history could not be read, and may be read again.
func (l *timeline) isStale(now time.Time) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.err != nil && now.Sub(l.failed) >= timelineRest
}

// size is how many terms are kept.
func (l *timeline) size() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.spans)
}
