package sidecar

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/exactly-one/tenure/internal/printable"
)

// The bounds on what a feed keeps for clients that resume.
const (
	maxRetained      = 1024    // events
	maxRetainedBytes = 1 << 20 // of them together
)

// maxBatch is how many events are taken from a feed at once.
const maxBatch = 64

// position is a place in a feed: after the event with this number. As text it is
// the id of that event.
type position struct {
	feed   string // positions in the feed of another process mean nothing here
	number uint64
}

func (p position) String() string { return p.feed + "-" + strconv.FormatUint(p.number, 10) }

// parsePosition reads what String wrote.
func parsePosition(text string) (position, error) {
	name, digits, found := strings.Cut(text, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	p := position{name, number}
	if !found || err != nil || len(name) != feedName || strings.ContainsFunc(name, unfitForName) || p.String() != text {
		return position{}, fmt.Errorf("the Last-Event-ID is not the id of an event of this API")
	}
	return p, nil
}

// feedName is the length of a feed's name.
const feedName = 10

// unfitForName reports characters that the name of a feed does not have.
func unfitForName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '2' || r > '7')
}

// feed is the sequence of events, numbered from 1, of which it keeps the last
// ones, encoded once for all clients. A client is no more than a position in it,
// so clients cost the feed nothing and cannot delay it. It is safe for
// concurrent use.
type feed struct {
	name string

	mu      sync.Mutex
	frames  [maxRetained][]byte // the event with number n is at n % maxRetained
	oldest  uint64              // number of the oldest event that is kept
	next    uint64              // number of the next event
	bytes   int                 // of the events that are kept
	closed  bool
	changed chan struct{} // closed at the next change
}

func newFeed() *feed {
	return &feed{
		name: strings.ToLower(rand.Text()[:feedName]), oldest: 1, next: 1, changed: make(chan struct{}),
	}
}

// publish appends an event of a kind, as a frame of a stream of server-sent
// events. After close it does nothing.
func (f *feed) publish(kind string, event any) error {
	data, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	frame := encodeFrame(position{f.name, f.next}.String(), kind, data)
	for f.next-f.oldest == maxRetained || f.next > f.oldest && f.bytes+len(frame) > maxRetainedBytes {
		slot := &f.frames[f.oldest%maxRetained]
		f.bytes -= len(*slot)
		*slot = nil
		f.oldest++
	}
	f.frames[f.next%maxRetained] = frame
	f.bytes += len(frame)
	f.next++
	f.signal()
	return nil
}

// signal wakes everybody who waits for a change. Under the mutex.
func (f *feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// close ends the feed: clients get what is left and then its end.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.signal()
	}
}

// start is where a client's stream begins.
type start struct {
	at     position // after this event
	gap    bool     // events before it were missed
	missed *uint64  // how many, if known
}

// join finds where the stream of a client begins that has seen everything up to
// a position, or nothing.
func (f *feed) join(last *position) start {
	f.mu.Lock()
	defer f.mu.Unlock()
	latest := position{f.name, f.next - 1}
	if last == nil {
		return start{at: latest}
	}
	before := position{f.name, f.oldest - 1}
	switch {
	case last.feed != f.name || last.number > latest.number:
		return start{at: before, gap: true}
	case last.number < before.number:
		missed := before.number - last.number
		return start{at: before, gap: true, missed: &missed}
	default:
		return start{at: *last}
	}
}

// batch is what a feed has for a client.
type batch struct {
	frames  [][]byte
	through uint64          // the number of the last of them
	behind  bool            // the feed no longer has what comes next
	ended   bool            // nothing will come any more
	changed <-chan struct{} // closed when there may be more
}

// after returns the events that follow a number.
func (f *feed) after(number uint64) batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := batch{through: number, behind: number+1 < f.oldest, changed: f.changed}
	if b.behind {
		return b
	}
	for b.through+1 < f.next && len(b.frames) < maxBatch {
		b.through++
		b.frames = append(b.frames, f.frames[b.through%maxRetained])
	}
	b.ended = f.closed && len(b.frames) == 0
	return b
}

// encodeFrame is an event as it goes over the wire. Without an id a client keeps
// the last one it saw. JSON has no line ends of its own.
func encodeFrame(id, kind string, data []byte) []byte {
	data = printable.JSON(data)
	var frame []byte
	if id != "" {
		frame = fmt.Appendf(frame, "id: %s\n", id)
	}
	return fmt.Appendf(frame, "event: %s\ndata: %s\n\n", kind, data)
}
