package faultwire

import (
	"sync"
	"time"
)

// Far makes the server as far away as this round trip: all connections, present and
// future, bring everything later by half of it each way, and opening a connection takes
// one round trip more, as TCP's handshake does.
func (p *Proxy) Far(roundTrip time.Duration) {
	p.Delay(roundTrip / 2)
	p.setAll([]Direction{ToServer}, func(f *faults) { f.handshake = roundTrip })
}

// RoundTrips returns how many round trips the clients have made in sequence, over all
// connections together, without TCP's handshakes. What a client sends counts as sent
// after everything that has arrived at any client. So round trips that run side by side
// count once, and whatever is sent before an answer arrives belongs to the same one. It
// needs a delay that is longer than a client takes to send all of that, see [Proxy.Far].
func (p *Proxy) RoundTrips() int { return p.trips.latest() }

// roundTrips numbers the round trips of a proxy.
type roundTrips struct {
	mu       sync.Mutex
	finished int // number of the latest whose answer has arrived
}

func (r *roundTrips) latest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished
}

// next is the number of a round trip that begins now.
func (r *roundTrips) next() int { return r.latest() + 1 }

func (r *roundTrips) finish(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = max(r.finished, number)
}

// RoundTrips returns how many round trips the client has made on the connection, without
// TCP's handshake; see [Proxy.RoundTrips].
func (c *Conn) RoundTrips() int {
	c.sent.mu.Lock()
	defer c.sent.mu.Unlock()
	return c.sent.count
}

// requests are the round trips of one connection whose requests have reached the server.
type requests struct {
	mu     sync.Mutex
	count  int
	number int // of the latest
}

func (r *requests) arrived(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number > r.number {
		r.number = number
		r.count++
	}
}

func (r *requests) latest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number
}
