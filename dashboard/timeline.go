package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/postgres"
)

// The bounds on the timelines in memory: together at most about 40 MB.
const (
	maxTimelines     = 8
	maxTimelineTerms = 100_000
	timelineTimeout  = 20 * time.Second
)

// timelines are the histories of the roles that people looked at last. Each is
// read once and then follows what the watch sees, so that it costs the database
// nothing to look at it again. It is safe for concurrent use.
type timelines struct {
	backend *postgres.Backend
	turn    chan struct{} // to read, one after another: the watch reads in between

	mu      sync.Mutex
	loaded  map[string]*timeline
	touched []string // the roles, the one looked at last at the end
}

// timeline is the history of a role.
type timeline struct {
	ready chan struct{} // closed when it was read

	mu      sync.RWMutex
	err     error
	reading bool
	pending []postgres.TermRecord // what the watch saw meanwhile
	spans   []span                // oldest first
	nodes   []nodeName
	index   map[uuid.UUID]int32
	texts   []string // reasons and who asked
	textAt  map[string]int32
}

type nodeName struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

// span is a term, without what many have in common. Times are in microseconds
// since 1970; the end is 0 while the term goes on.
type span struct {
	term, began, ended int64
	vacant             float32 // seconds, negative if unknown
	reason, by         int32   // index in texts
	node               int32   // index in nodes
}

func newTimelines(backend *postgres.Backend) *timelines {
	return &timelines{backend: backend, turn: make(chan struct{}, 1), loaded: map[string]*timeline{}}
}

// of returns the history of a role, and reads it if need be.
func (t *timelines) of(ctx context.Context, role string) (*timeline, error) {
	t.mu.Lock()
	line := t.loaded[role]
	mine := line == nil
	if mine {
		line = &timeline{ready: make(chan struct{}), reading: true, index: map[uuid.UUID]int32{}, textAt: map[string]int32{}}
		t.loaded[role] = line
	}
	t.touch(role)
	t.mu.Unlock()
	if mine {
		select {
		case t.turn <- struct{}{}:
			// Others wait for it too: it does not end with the one who asked first.
			line.read(context.WithoutCancel(ctx), t.backend, role)
			<-t.turn
		case <-ctx.Done():
			line.fail(context.Cause(ctx))
		}
		if line.err != nil {
			t.forget(role)
		}
	}
	select {
	case <-line.ready:
		return line, line.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// touch notes that a role was looked at and forgets the one that was not for
// longest. Under the mutex.
func (t *timelines) touch(role string) {
	t.touched = slices.DeleteFunc(t.touched, func(r string) bool { return r == role })
	t.touched = append(t.touched, role)
	if len(t.touched) > maxTimelines {
		delete(t.loaded, t.touched[0])
		t.touched = t.touched[1:]
	}
}

func (t *timelines) forget(role string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.loaded, role)
	t.touched = slices.DeleteFunc(t.touched, func(r string) bool { return r == role })
}

// follow adds what the watch saw.
func (t *timelines) follow(terms []postgres.TermRecord) {
	t.mu.Lock()
	lines := make(map[string]*timeline, len(t.loaded))
	for role, line := range t.loaded {
		lines[role] = line
	}
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

func (l *timeline) read(ctx context.Context, backend *postgres.Backend, role string) {
	ctx, cancel := context.WithTimeout(ctx, timelineTimeout)
	defer cancel()
	terms, err := backend.History(ctx, postgres.HistoryQuery{Role: role, Limit: maxTimelineTerms})
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(l.ready)
	l.err, l.reading = err, false
	slices.Reverse(terms)
	slices.SortStableFunc(terms, func(a, b postgres.TermRecord) int { return cmp.Compare(a.Term, b.Term) })
	l.spans = make([]span, 0, len(terms)+16)
	for _, term := range append(terms, l.pending...) {
		l.add(term)
	}
	l.pending = nil
}

// fail ends the waiting of all who want the history of a role that is not read.
func (l *timeline) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	close(l.ready)
}

func (l *timeline) follow(term postgres.TermRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading {
		l.pending = append(l.pending, term)
		return
	}
	l.add(term)
}

// add appends a term, or brings the last one up to date. Under the mutex.
func (l *timeline) add(t postgres.TermRecord) {
	node, ok := l.index[t.Node]
	if !ok {
		node = int32(len(l.nodes))
		l.index[t.Node] = node
		l.nodes = append(l.nodes, nodeName{t.Node, t.NodeName})
	}
	s := span{
		term: t.Term, began: t.Began.UnixMicro(), vacant: float32(t.Vacant.Seconds()),
		reason: l.text(string(t.Reason)), by: l.text(t.By), node: node,
	}
	if !t.Ended.IsZero() {
		s.ended = t.Ended.UnixMicro()
	}
	switch last := len(l.spans) - 1; {
	case last < 0 || s.term > l.spans[last].term:
		l.spans = append(l.spans, s)
	case s.term == l.spans[last].term:
		l.spans[last] = s
	default: // its end is known already, or it was too old to be read
		i, found := slices.BinarySearchFunc(l.spans, s.term, func(s span, term int64) int { return cmp.Compare(s.term, term) })
		if found {
			l.spans[i] = s
		}
	}
}

func (l *timeline) text(text string) int32 {
	i, ok := l.textAt[text]
	if !ok {
		i = int32(len(l.texts))
		l.textAt[text] = i
		l.texts = append(l.texts, text)
	}
	return i
}

// viewRecord is a part of a timeline, with as much detail as there is room for.
type viewRecord struct {
	Nodes []nodeName `json:"nodes"`
	First int64      `json:"first"` // when the oldest term began, in ms; 0 if there is none
	Total int        `json:"total"` // terms in memory
	// Spans are [began ms, ended ms or null, node or -1 for several, first term,
	// terms, reason, vacant seconds before or null]. One with several terms stands
	// for what is too short to be told apart.
	Spans [][7]any `json:"spans"`
}

// view returns what was going on from one time to another, in at most about most
// spans.
func (l *timeline) view(from, to time.Time, most int) viewRecord {
	l.mu.RLock()
	defer l.mu.RUnlock()
	v := viewRecord{Nodes: slices.Clone(l.nodes), Total: len(l.spans), Spans: [][7]any{}}
	if len(l.spans) == 0 {
		return v
	}
	v.First = l.spans[0].began / 1000
	begin, end := from.UnixMicro(), to.UnixMicro()
	first := sort.Search(len(l.spans), func(i int) bool { return l.spans[i].ended == 0 || l.spans[i].ended >= begin })
	last := sort.Search(len(l.spans), func(i int) bool { return l.spans[i].began > end })
	first = min(first, last)
	shown := l.spans[first:last]
	least := int64(0) // what is shorter is put together
	if len(shown) > most {
		least = (end - begin) / int64(most)
	}
	for len(shown) > 0 {
		n := 1
		for n < len(shown) && shown[n].ended != 0 && shown[n].ended-shown[0].began < least {
			n++
		}
		v.Spans = append(v.Spans, l.merged(shown[:n]))
		shown = shown[n:]
	}
	return v
}

// merged is one or several terms as one span.
func (l *timeline) merged(spans []span) [7]any {
	first, last := spans[0], spans[len(spans)-1]
	node := first.node
	if slices.ContainsFunc(spans, func(s span) bool { return s.node != node }) {
		node = -1
	}
	var ended, vacant any
	if last.ended != 0 {
		ended = last.ended / 1000
	}
	if first.vacant >= 0 {
		vacant = first.vacant
	}
	return [7]any{first.began / 1000, ended, node, first.term, len(spans), l.texts[last.reason], vacant}
}

// termRecord is a term in a table.
type termRecord struct {
	Term     int64      `json:"term"`
	Node     uuid.UUID  `json:"node"`
	NodeName string     `json:"node_name"`
	Began    time.Time  `json:"began"`
	Ended    *time.Time `json:"ended"`
	Reason   string     `json:"reason"`
	By       string     `json:"by,omitempty"`
	Vacant   *float64   `json:"vacant_seconds"`
}

// page returns some terms, the newest first, and how many there are.
func (l *timeline) page(offset, limit int) ([]termRecord, int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	records := []termRecord{}
	for i := len(l.spans) - 1 - offset; i >= 0 && len(records) < limit; i-- {
		s := l.spans[i]
		r := termRecord{
			Term: s.term, Node: l.nodes[s.node].ID, NodeName: l.nodes[s.node].Name, Began: time.UnixMicro(s.began).UTC(),
			Reason: l.texts[s.reason], By: l.texts[s.by],
		}
		if s.ended != 0 {
			at := time.UnixMicro(s.ended).UTC()
			r.Ended = &at
		}
		if s.vacant >= 0 {
			vacant := math.Round(float64(s.vacant)*1e6) / 1e6
			r.Vacant = &vacant
		}
		records = append(records, r)
	}
	return records, len(l.spans)
}

// readTimeline returns the timeline of a role that exists.
func (d *Dashboard) readTimeline(ctx context.Context, role string) (*timeline, error) {
	if _, ok := d.picture.role(role); !ok {
		return nil, errUnknown
	}
	line, err := d.timelines.of(ctx, role)
	if err != nil {
		return nil, fmt.Errorf("read the history of a role: %w", err)
	}
	return line, nil
}
