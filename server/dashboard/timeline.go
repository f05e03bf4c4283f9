package dashboard

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// The bounds on the timelines in memory: together at most about 40 MB.
const (
	maxTimelines     = 1000
	maxTimelineTerms = 100_000 // of one
	timelinePart     = 20_000  // read at a time
	maxAllTerms      = 600_000 // of all but the one used last
)

// timeline is the history of a role.
type timeline struct {
	ready chan struct{} // closed when it was read

	touched uint64 // when it was last used; under the mutex of timelines

	mu      sync.RWMutex
	err     error     // why it could not be read
	failed  time.Time // when the read failed
	reading bool
	pending []history.Term // terms that the watch read in the meantime
	spans   []span         // oldest first
	nodes   []nodeName
	index   map[uuid.UUID]int32
	texts   []string // reasons and requesters
	textAt  map[string]int32
}

type nodeName struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

// span is a term without the texts common to many terms. Times are in microseconds since
// 1970; the end is 0 while the term is open.
type span struct {
	term, began, ended int64
	vacant, silent     float32 // seconds, negative if unknown
	reason, by         int32   // index in texts
	node               int32   // index in nodes
}

func (l *timeline) follow(term history.Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading {
		l.pending = append(l.pending, term)
		return
	}
	l.add(term)
}

// add appends a term, or brings the last one up to date. Under the mutex.
func (l *timeline) add(t history.Term) {
	node, ok := l.index[t.Node]
	if !ok {
		node = int32(len(l.nodes))
		l.index[t.Node] = node
		l.nodes = append(l.nodes, nodeName{t.Node, t.NodeName})
	}
	s := span{
		term: t.Term, began: t.Began.UnixMicro(), vacant: float32(t.PrecedingVacancy.Seconds()), silent: float32(t.PrecedingSilence.Seconds()),
		reason: l.text(string(t.Reason)), by: l.text(t.By), node: node,
	}
	if !t.Ended.IsZero() {
		s.ended = t.Ended.UnixMicro()
	}
	switch last := len(l.spans) - 1; {
	case last < 0 || s.term > l.spans[last].term:
		l.spans = append(l.spans, s)
		if len(l.spans) > maxTimelineTerms*5/4 {
			l.spans = slices.Clone(l.spans[len(l.spans)-maxTimelineTerms:])
		}
	case s.term == l.spans[last].term:
		l.spans[last] = s
	default: // its end is already known, or it was too old to be read
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
	// Spans are [began ms, ended ms or null, node or -1 for several, first term, terms,
	// reason, seconds without a leader before or null]. A span with several terms
	// combines terms too short to be shown separately.
	Spans [][7]any `json:"spans"`
}

// view returns the terms between two times, in at most about most spans.
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
	least := int64(0) // shorter terms are combined
	if len(shown) > most {
		least = (end - begin) / int64(most)
	}
	for len(shown) > 0 {
		n := 1
		for n < len(shown) && shown[n].ended != 0 && shown[n].ended-shown[0].began < least {
			n++
		}
		v.Spans = append(v.Spans, l.merged(first, n))
		shown, first = shown[n:], first+n
	}
	return v
}

// gapBefore returns the time without a leader before a span.
func (l *timeline) gapBefore(i int) gap {
	var reason tenure.EndReason
	if i > 0 {
		reason = tenure.EndReason(l.texts[l.spans[i-1].reason])
	}
	s := l.spans[i]
	return gapBefore(reason, history.Term{PrecedingVacancy: duration(s.vacant), PrecedingSilence: duration(s.silent)})
}

// duration returns seconds as a duration in whole microseconds, or -1 for a negative number.
func duration(seconds float32) time.Duration {
	if seconds < 0 {
		return -1
	}
	return time.Duration(math.Round(float64(seconds)*1e6)) * time.Microsecond
}

// merged is n terms from a place on as one span.
func (l *timeline) merged(at, n int) [7]any {
	spans := l.spans[at : at+n]
	first, last := spans[0], spans[len(spans)-1]
	node := first.node
	if slices.ContainsFunc(spans, func(s span) bool { return s.node != node }) {
		node = -1
	}
	var ended any
	if last.ended != 0 {
		ended = last.ended / 1000
	}
	return [7]any{first.began / 1000, ended, node, first.term, len(spans), l.texts[last.reason], l.gapBefore(at).Without}
}

// termRecord is a term in a table.
type termRecord struct {
	gap

	Term     int64      `json:"term"`
	Node     uuid.UUID  `json:"node"`
	NodeName string     `json:"node_name"`
	Began    time.Time  `json:"began_at"`
	Ended    *time.Time `json:"ended_at"`
	Reason   string     `json:"end_reason"`
	By       string     `json:"requested_by"`
}

// page returns some of the terms that mention a text, the newest first, and how many there
// are. No text means all.
func (l *timeline) page(wanted string, offset, limit int) ([]termRecord, int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	records, total := []termRecord{}, 0
	for i := len(l.spans) - 1; i >= 0; i-- {
		s := l.spans[i]
		if !l.mentions(s, wanted) {
			continue
		}
		if total++; total <= offset || len(records) == limit {
			continue
		}
		r := termRecord{
			gap:  l.gapBefore(i),
			Term: s.term, Node: l.nodes[s.node].ID, NodeName: l.nodes[s.node].Name, Began: time.UnixMicro(s.began).UTC(),
			Reason: l.texts[s.reason], By: l.texts[s.by],
		}
		if s.ended != 0 {
			at := time.UnixMicro(s.ended).UTC()
			r.Ended = &at
		}
		records = append(records, r)
	}
	return records, total
}

// mentions reports whether a term mentions a text in lower case. The page shows reasons
// without underscores.
func (l *timeline) mentions(s span, wanted string) bool {
	return wanted == "" || contains(l.nodes[s.node].Name, wanted) || contains(strings.ReplaceAll(l.texts[s.reason], "_", " "), wanted) ||
		contains(l.texts[s.by], wanted) || strings.HasSuffix(strconv.FormatInt(s.term, 10), wanted)
}
