// Package feed keeps the events of a server and streams them to each client as server-sent
// events. A returning client resumes where it was.
package feed

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/exactly-one/tenure/internal/printable"
)

// MaxRetained bounds the number of events in a feed for resuming clients.
const MaxRetained = 1024

const (
	maxBatch   = 64 // events taken from a feed at a time
	nameLength = 10
)

// Feed is a sequence of events and a set of states. The events are numbered from
// 1, the last ones are kept, and clients miss none. Of a state only the newest
// value matters. Each is encoded once for all clients. A client is only a place
// in the feed, so clients cost it nothing and cannot delay it. It is safe for
// concurrent use.
type Feed struct {
	name     string // positions in the feed of another process mean nothing here
	maxBytes int    // of the events that are kept
	kinds    []string

	// Guarded by mu.
	mu      sync.Mutex
	frames  [MaxRetained][]byte // the event with number n is at n % MaxRetained
	oldest  uint64              // number of the oldest event that is kept
	next    uint64              // number of the next event
	bytes   int                 // of the events that are kept
	states  map[string]state
	version uint64 // of the newest state
	closed  bool
	changed chan struct{} // closed at the next change
}

// state is the newest value of a kind.
type state struct {
	version uint64
	frame   []byte
}

// New returns a feed of at most maxBytes of events, but always the last one. States are
// sent in the order of their kinds.
func New(maxBytes int, states ...string) *Feed {
	return &Feed{
		name: strings.ToLower(rand.Text()[:nameLength]), maxBytes: maxBytes, kinds: states,
		oldest: 1, next: 1, states: map[string]state{}, changed: make(chan struct{}),
	}
}

// Publish appends an event. It does nothing once the feed is closed. An error means that
// the event has no form in JSON.
func (f *Feed) Publish(kind string, event any) error {
	data, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	frame := frameOf(f.Position(f.next).String(), kind, data)
	for f.next-f.oldest == MaxRetained || f.next > f.oldest && f.bytes+len(frame) > f.maxBytes {
		slot := &f.frames[f.oldest%MaxRetained]
		f.bytes -= len(*slot)
		*slot = nil
		f.oldest++
	}
	f.frames[f.next%MaxRetained] = frame
	f.bytes += len(frame)
	f.next++
	f.signalLocked()
	return nil
}

// SetState replaces the state of a kind. It does nothing once the feed is closed. An error
// means that the state has no form in JSON.
func (f *Feed) SetState(kind string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode a state: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.version++
		f.states[kind] = state{f.version, frameOf("", kind, data)}
		f.signalLocked()
	}
	return nil
}

// signalLocked wakes the streams.
func (f *Feed) signalLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Close ends the feed: clients get the rest and then its end.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.signalLocked()
	}
}

// Position is a place in a feed: after the event with this number. As text it is the id of
// the event.
type Position struct {
	feed   string
	number uint64
}

// Position returns the position after the event with a number.
func (f *Feed) Position(number uint64) Position { return Position{f.name, number} }

// String returns the id of the event.
func (p Position) String() string { return p.feed + "-" + strconv.FormatUint(p.number, 10) }

// parsePosition reads the text of String.
func parsePosition(text string) (Position, error) {
	name, digits, found := strings.Cut(text, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	p := Position{name, number}
	if !found || err != nil || len(name) != nameLength || strings.ContainsFunc(name, notInName) || p.String() != text {
		return Position{}, errors.New("the Last-Event-ID is not the id of an event of this API")
	}
	return p, nil
}

// notInName reports characters not in any name of a feed.
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '2' || r > '7')
}

// Start is where the stream of a client begins.
type Start struct {
	At     Position // after this event
	Gap    bool     // the client missed events before it
	Missed *uint64  // how many, if known
}

// Join returns where the stream of a client begins. id is the last event seen by the
// client: the stream begins after it or, after a gap, at the oldest kept event. An empty
// id begins with the next event. An error means that the id belongs to no feed; the client
// then has a gap too.
func (f *Feed) Join(id string) (Start, error) {
	if id == "" {
		return Start{At: f.Latest()}, nil
	}
	last, err := parsePosition(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.Position(f.oldest - 1)
	switch {
	case err != nil || last.feed != f.name || last.number >= f.next:
		return Start{At: before, Gap: true}, err
	case last.number < before.number:
		missed := before.number - last.number
		return Start{At: before, Gap: true, Missed: &missed}, nil
	default:
		return Start{At: last}, nil
	}
}

// Latest returns the position after the newest event.
func (f *Feed) Latest() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Position(f.next - 1)
}

// place is the end of a client's stream so far.
type place struct {
	event uint64 // the number of the last event
	state uint64 // the version of the newest state
}

// batch has the next frames for a client.
type batch struct {
	frames  [][]byte
	through place           // where the client is after them
	behind  bool            // the feed no longer has the next event
	ended   bool            // nothing more will come
	changed <-chan struct{} // closed when there may be more
}

// after returns the frames after a place. Events come first: before a state, a client sees
// the events leading to it.
func (f *Feed) after(at place) batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := batch{through: at, behind: at.event+1 < f.oldest, changed: f.changed}
	if b.behind {
		return b
	}
	for b.through.event+1 < f.next && len(b.frames) < maxBatch {
		b.through.event++
		b.frames = append(b.frames, f.frames[b.through.event%MaxRetained])
	}
	if b.through.event+1 == f.next {
		for _, kind := range f.kinds {
			if s := f.states[kind]; s.version > at.state {
				b.frames = append(b.frames, s.frame)
			}
		}
		b.through.state = f.version
	}
	b.ended = f.closed && len(b.frames) == 0
	return b
}

// Frame encodes an event for one client. Without an id the client keeps the id of the last
// event. It panics if the event has no form in JSON.
func Frame(id, kind string, event any) []byte {
	data, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	return frameOf(id, kind, data)
}

// frameOf encodes an event for sending. JSON contains no line ends.
func frameOf(id, kind string, data []byte) []byte {
	data = printable.JSON(data)
	var frame []byte
	if id != "" {
		frame = fmt.Appendf(frame, "id: %s\n", id)
	}
	return fmt.Appendf(frame, "event: %s\ndata: %s\n\n", kind, data)
}
