package server

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// gate stops whatever passes it while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while it is open; guarded by mu
}

// stop shuts the gate.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut != nil
}

// open ends a stop.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open, or until unless is closed.
func (g *gate) pass(unless <-chan struct{}) {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return
		}
		select {
		case <-shut:
		case <-unless:
			return
		}
	}
}

// stream carries bytes in one direction. A process that is stopped does not read, and
// its kernel keeps the bytes.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	data    []byte
	ended   bool // the writer has closed it
	unread  bool // the reader has closed it
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.changed.Broadcast()
}

// simConn is one end of a connection between a node and an agent. Its process does
// nothing while it is stopped.
type simConn struct {
	in, out *stream
	process *gate
	late    []byte // what the process writes while it is stopped; guarded by out.mu
}

// connect returns the two ends of a new connection.
func connect(node, agent *gate) (atNode, atAgent *simConn) {
	there, back := newStream(), newStream()
	return &simConn{in: back, out: there, process: node}, &simConn{in: there, out: back, process: agent}
}

func (c *simConn) Read(p []byte) (int, error) {
	n, err := c.read(p)
	c.process.pass(nil)
	return n, err
}

func (c *simConn) read(p []byte) (int, error) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	for len(c.in.data) == 0 && !c.in.ended && !c.in.unread {
		c.in.changed.Wait()
	}
	switch {
	case c.in.unread:
		return 0, net.ErrClosed
	case len(c.in.data) == 0:
		return 0, io.EOF
	}
	n := copy(p, c.in.data)
	c.in.data = c.in.data[n:]
	return n, nil
}

// Write does not block while the process is stopped, since its caller holds a mutex, which
// would stop the time of the bubble. What it writes arrives when the process runs.
func (c *simConn) Write(p []byte) (n int, err error) {
	stopped := c.process.stopped()
	c.out.change(func() {
		switch {
		case c.out.ended:
			err = net.ErrClosed
		case c.out.unread:
			err = syscall.EPIPE
		case stopped || len(c.late) > 0:
			if len(c.late) == 0 {
				go c.flush() // exits when the process runs
			}
			n, c.late = len(p), append(c.late, p...)
		default:
			n, c.out.data = len(p), append(c.out.data, p...)
		}
	})
	return n, err
}

// flush waits until the process runs, and writes what it has written.
func (c *simConn) flush() {
	c.process.pass(nil)
	c.out.change(func() { c.out.data, c.late = append(c.out.data, c.late...), nil })
}

func (c *simConn) CloseWrite() error {
	c.flush()
	c.out.change(func() { c.out.ended = true })
	return nil
}

func (c *simConn) Close() error {
	c.process.pass(nil)
	c.cut()
	return nil
}

// cut is how a kernel closes the connection of a process that has died.
func (c *simConn) cut() {
	c.out.change(func() { c.out.ended = true })
	c.in.change(func() { c.in.unread = true })
}

// closed reports whether this end is closed.
func (c *simConn) closed() bool {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return c.in.unread
}

func (c *simConn) SetReadDeadline(time.Time) error  { return nil }
func (c *simConn) SetWriteDeadline(time.Time) error { return nil }
