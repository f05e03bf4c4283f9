package faultwire

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// faults is what is wrong with a link.
type faults struct {
	stalled   bool
	delay     time.Duration
	handshake time.Duration // how much later the first bytes arrive
	budget    int64         // bytes to forward before all are dropped; unlimited if negative
}

var noFaults = faults{budget: unlimited}

const unlimited = -1

// link forwards one direction of a connection: one goroutine reads into a
// queue, so that the sender never notices a stall, and one writes from it.
type link struct {
	source, target *net.TCPConn
	// pass sees the bytes before they are written and returns those to write. It
	// may block. ended, if set, is called at the end of the stream.
	pass  func([]byte) []byte
	ended func()
	// number is the round trip to which bytes belong that arrive now, and forwarded is
	// called with it before they are written.
	number    func() int
	forwarded func(number int)

	mu      sync.Mutex
	begun   bool // something has arrived
	faults  faults
	severed bool // nothing more is forwarded, not even the end
	queue   []chunk
	changed broadcast
}

// chunk is what one read brought. Without data it is the end of the stream.
type chunk struct {
	data   []byte
	due    time.Time
	number int  // of the round trip
	reset  bool // the stream ended with an RST
}

func newLink(source, target *net.TCPConn, initial faults, pass func([]byte) []byte) *link {
	return &link{source: source, target: target, pass: pass, faults: initial, changed: newBroadcast()}
}

// set changes the faults.
func (l *link) set(change func(*faults)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.faults)
	l.changed.send()
}

// sever makes the link forward nothing more.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	l.changed.send()
}

// read fills the queue until the source ends.
func (l *link) read() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := l.source.Read(buffer)
		if n > 0 {
			l.enqueue(chunk{data: append([]byte(nil), buffer[:n]...)})
		}
		if err != nil {
			l.enqueue(chunk{reset: !errors.Is(err, io.EOF) && errors.Is(err, syscall.ECONNRESET)})
			return
		}
	}
}

func (l *link) enqueue(c chunk) {
	c.number = l.number()
	l.mu.Lock()
	defer l.mu.Unlock()
	c.due = time.Now().Add(l.faults.delay)
	if !l.begun {
		l.begun = true
		c.due = c.due.Add(l.faults.handshake)
	}
	l.queue = append(l.queue, c)
	l.changed.send()
}

// write empties the queue until the stream ends or done is closed.
func (l *link) write(done <-chan struct{}) {
	for {
		next, ok := l.dequeue(done)
		switch {
		case !ok:
			return
		case next.data == nil:
			l.finish(next.reset)
			return
		}
		l.forwarded(next.number)
		if _, err := l.target.Write(l.spend(l.pass(next.data))); err != nil {
			// The other direction informs the source when the target is gone.
			l.sever()
		}
	}
}

// dequeue waits for the first chunk that may be forwarded.
func (l *link) dequeue(done <-chan struct{}) (chunk, bool) {
	for {
		l.mu.Lock()
		changed := l.changed.next()
		var timer <-chan time.Time
		if len(l.queue) > 0 && (!l.faults.stalled || l.severed) {
			head := l.queue[0]
			wait := time.Until(head.due)
			if wait <= 0 || l.severed {
				l.queue = l.queue[1:]
				l.mu.Unlock()
				return head, true
			}
			timer = time.After(wait)
		}
		l.mu.Unlock()
		select {
		case <-changed:
		case <-timer:
		case <-done:
			return chunk{}, false
		}
	}
}

// spend returns the part of the data that is not dropped.
func (l *link) spend(data []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.severed {
		return nil
	}
	if l.faults.budget == unlimited {
		return data
	}
	n := min(int64(len(data)), l.faults.budget)
	l.faults.budget -= n
	return data[:n]
}

// finish passes the end of the stream on.
func (l *link) finish(wasReset bool) {
	if l.ended != nil {
		l.ended()
	}
	l.mu.Lock()
	silent := l.severed || l.faults.budget != unlimited
	l.mu.Unlock()
	switch {
	case silent:
	case wasReset:
		reset(l.target)
	default:
		_ = l.target.CloseWrite() // fails if the target is gone already
	}
}

// reset closes a connection with an RST.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // both fail only if it is closed already
	_ = conn.Close()
}
