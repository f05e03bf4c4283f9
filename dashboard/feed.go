package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// The bounds on what a feed keeps for viewers that come back.
const (
	maxRetained      = 1024    // changes
	maxRetainedBytes = 2 << 20 // of them together
)

// maxBatch is how many changes are taken from a feed at once.
const maxBatch = 64

// feed is what viewers are told, encoded once for all of them. There are changes,
// numbered from 1, of which the last ones are kept and none may be missed, and
// states, of which only the newest matters. A viewer is no more than a position
// in it: viewers cost the feed nothing and cannot delay it. It is safe for
// concurrent use.
type feed struct {
	name string // positions in the feed of another process mean nothing here

	mu      sync.Mutex
	changes [maxRetained][]byte // the change with number n is at n % maxRetained
	oldest  uint64              // number of the oldest change that is kept
	next    uint64              // number of the next change
	bytes   int                 // of the changes that are kept
	states  map[string]state
	version uint64 // of the newest state
	closed  bool
	changed chan struct{} // closed when there is more
}

// state is the newest state of a kind.
type state struct {
	version uint64
	frame   []byte
}

func newFeed() *feed {
	return &feed{
		name: strings.ToLower(rand.Text()[:10]), oldest: 1, next: 1, states: map[string]state{}, changed: make(chan struct{}),
	}
}

// id is how the change with a number is named to viewers.
func (f *feed) id(number uint64) string { return f.name + "-" + strconv.FormatUint(number, 10) }

// number is the change that an id names, if it is of this feed.
func (f *feed) number(id string) (number uint64, ok bool) {
	name, digits, _ := strings.Cut(id, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && name == f.name
}

// publish appends a change. After close it does nothing. An error says that the
// change cannot be told.
func (f *feed) publish(change any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	frame := frameOf(f.id(f.next), kindChange, data)
	for f.next-f.oldest == maxRetained || f.next > f.oldest && f.bytes+len(frame) > maxRetainedBytes {
		slot := &f.changes[f.oldest%maxRetained]
		f.bytes -= len(*slot)
		*slot = nil
		f.oldest++
	}
	f.changes[f.next%maxRetained] = frame
	f.bytes += len(frame)
	f.next++
	f.signal()
	return nil
}

// tell replaces the state of a kind. An error says that it cannot be told.
func (f *feed) tell(kind string, now any) error {
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.version++
		f.states[kind] = state{f.version, frameOf("", kind, data)}
		f.signal()
	}
	return nil
}

// signal wakes everybody who waits for more. Under the mutex.
func (f *feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// close ends the feed: viewers get what is left and then its end.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.signal()
	}
}

// place is where a viewer is in a feed.
type place struct {
	change uint64 // the last one seen
	state  uint64 // the version of the last one seen
}

// join finds the place of a viewer that saw everything up to the change with an
// id, or nothing. If what it missed is no longer there, it has to read everything
// anew.
func (f *feed) join(last string) (at place, missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	latest := place{change: f.next - 1}
	if last == "" {
		return latest, false
	}
	number, ok := f.number(last)
	if !ok || number >= f.next || number+1 < f.oldest {
		return latest, true
	}
	return place{change: number}, false
}

// batch is what a feed has for a viewer.
type batch struct {
	frames  [][]byte
	through place           // where the viewer is after them
	behind  bool            // the feed no longer has what comes next
	ended   bool            // nothing will come any more
	changed <-chan struct{} // closed when there may be more
}

// after returns what follows a place: changes first, so that a viewer that knows
// a state has heard of what led to it.
func (f *feed) after(at place) batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := batch{through: at, behind: at.change+1 < f.oldest, changed: f.changed}
	if b.behind {
		return b
	}
	for b.through.change+1 < f.next && len(b.frames) < maxBatch {
		b.through.change++
		b.frames = append(b.frames, f.changes[b.through.change%maxRetained])
	}
	if b.through.change+1 == f.next {
		for _, kind := range stateKinds {
			if s := f.states[kind]; s.version > at.state {
				b.frames = append(b.frames, s.frame)
			}
		}
		b.through.state = f.version
	}
	b.ended = f.closed && len(b.frames) == 0
	return b
}

// frameOf is an event as it goes over the wire. JSON has no line ends of its own.
func frameOf(id, kind string, data []byte) []byte {
	var frame []byte
	if id != "" {
		frame = fmt.Appendf(frame, "id: %s\n", id)
	}
	return fmt.Appendf(frame, "event: %s\ndata: %s\n\n", kind, data)
}
