package faultwire

import (
	"net"
	"sync"
	"time"
)

// Conn is one connection through the proxy. Its methods may be called from
// several goroutines and also after it has ended.
type Conn struct {
	client, server *net.TCPConn
	links          [2]*link
	session        *session
	sent           requests

	done chan struct{}
	end  func()
}

func newConn(p *Proxy, client, server *net.TCPConn) *Conn {
	c := &Conn{client: client, server: server, done: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.done) })
	c.session = newSession(server, p.notice, c.done)
	if p.loses {
		c.session.lose = func() { c.Cut() }
	}
	c.links[ToServer] = newLink(client, server, p.faults[ToServer], c.session.fromClient)
	c.links[ToClient] = newLink(server, client, p.faults[ToClient], c.session.fromServer)
	c.links[ToClient].ended = c.session.ended
	c.links[ToServer].number, c.links[ToServer].forwarded = p.trips.next, c.sent.arrived
	c.links[ToClient].number, c.links[ToClient].forwarded = c.sent.latest, p.trips.finish
	return c
}

// run forwards until both directions have ended.
func (c *Conn) run() {
	var readers, writers sync.WaitGroup
	for _, l := range c.links {
		readers.Go(l.read)
		writers.Go(func() { l.write(c.done) })
	}
	writers.Wait()
	c.end()
	_ = c.client.Close() // either may be closed already
	_ = c.server.Close()
	readers.Wait()
}

// Done is closed when the connection has ended on both sides.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stall takes bytes from one side and brings nothing to the other, not even the
// end of the connection, until [Conn.Resume]: a network that loses every packet.
func (c *Conn) Stall(directions ...Direction) {
	c.set(directions, func(f *faults) { f.stalled = true })
}

// Resume forwards what Stall kept back, in order, and what follows.
func (c *Conn) Resume(directions ...Direction) {
	c.set(directions, func(f *faults) { f.stalled = false })
}

// Delay brings everything that arrives from now on later by this much.
func (c *Conn) Delay(delay time.Duration, directions ...Direction) {
	c.set(directions, func(f *faults) { f.delay = delay })
}

// DropAfter forwards n more bytes, which can end in the middle of a message, and
// drops all that follow.
func (c *Conn) DropAfter(n int64, directions ...Direction) {
	c.set(directions, func(f *faults) { f.budget = n })
}

func (c *Conn) set(directions []Direction, change func(*faults)) {
	for _, direction := range orBoth(directions) {
		c.links[direction].set(change)
	}
}

// Cut ends the connection with an RST toward one side or both. A side that is
// spared hears nothing more.
func (c *Conn) Cut(directions ...Direction) { c.finish(directions, reset) }

// CloseGracefully ends the connection with a FIN toward one side or both. A
// side that is spared hears nothing more.
func (c *Conn) CloseGracefully(directions ...Direction) {
	c.finish(directions, func(conn *net.TCPConn) { _ = conn.Close() })
}

func (c *Conn) finish(directions []Direction, finish func(*net.TCPConn)) {
	for _, l := range c.links {
		l.sever() // first, or the end of one side would be passed on to the other
	}
	for _, direction := range orBoth(directions) {
		finish(c.links[direction].target)
	}
}

// ApplicationName is the session's present application_name; empty before the
// startup message.
func (c *Conn) ApplicationName() string { return c.session.parameter("application_name") }

// User is the user that the startup message names; empty before it.
func (c *Conn) User() string { return c.session.parameter("user") }

// Database is the database that the startup message names; empty before it.
func (c *Conn) Database() string { return c.session.parameter("database") }

// PID is the process id of the server's backend; 0 before the server sent it.
func (c *Conn) PID() uint32 { return c.session.backendPID() }
