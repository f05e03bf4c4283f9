package sim

import (
	"slices"
	"time"
)

// path is one direction of the network between a machine and the server for one kind of
// connection. It is guarded by World.mu.
type path struct {
	world   *World
	least   time.Duration // latency
	most    time.Duration
	extra   time.Duration // most that a fault adds to the latency
	blocked bool
	links   []*link

	blockedAt time.Duration
	changed   func() // if set, called when it was blocked or healed
}

func (w *World) newPath() *path {
	return &path{world: w, least: w.network.Least, most: w.network.Most}
}

// block holds back every message, also those in flight, until heal.
func (p *path) block() {
	if p.blocked {
		return
	}
	p.blocked, p.blockedAt = true, p.world.now()
	if p.changed != nil {
		p.changed()
	}
}

// heal delivers the messages that were held back, and removes extra latency.
func (p *path) heal() {
	p.blocked, p.extra = false, 0
	for _, l := range p.links {
		overdue := l.overdue
		l.overdue = 0
		for range overdue {
			p.world.after(l.latency(), l.arrive)
		}
	}
	if p.changed != nil {
		p.changed()
	}
}

// link is one direction of one connection. As on TCP, nothing is reordered and nothing
// is lost as long as the connection is open. It is guarded by World.mu.
type link struct {
	path    *path
	rnd     *stream
	queue   []func()
	sent    []time.Duration // when each was
	overdue int             // arrivals that met a blocked path
	closed  bool
}

// connect returns a new link whose latencies are drawn from rnd.
func (p *path) connect(rnd *stream) *link {
	l := &link{path: p, rnd: rnd}
	p.links = append(p.links, l)
	return l
}

func (l *link) latency() time.Duration {
	latency := l.rnd.between(l.path.least, l.path.most)
	if l.path.extra > 0 {
		latency += l.rnd.between(0, l.path.extra)
	}
	return latency
}

// send delivers f to the other end, where it runs under World.mu.
func (l *link) send(f func()) {
	if l.closed {
		return
	}
	l.queue, l.sent = append(l.queue, f), append(l.sent, l.path.world.now())
	if l.path.blocked {
		l.overdue++
		return
	}
	l.path.world.after(l.latency(), l.arrive)
}

// arrive delivers the oldest message, whichever one's latency has passed: that
// keeps the order.
func (l *link) arrive() {
	if l.closed {
		return
	}
	if l.path.blocked {
		l.overdue++
		return
	}
	f := l.queue[0]
	l.queue, l.sent = l.queue[1:], l.sent[1:]
	f()
}

// close drops the messages in flight and everything sent from now on.
func (l *link) close() {
	l.closed = true
	l.queue, l.sent = nil, nil
	l.path.links = slices.DeleteFunc(l.path.links, func(other *link) bool { return other == l })
}
