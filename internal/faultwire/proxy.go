package faultwire

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// dialTimeout bounds the connection to the server.
const dialTimeout = 5 * time.Second

// Direction is one of the two ways that bytes take through the proxy.
type Direction int

// The directions. Where a function takes several, none means both.
const (
	ToServer Direction = iota
	ToClient
)

func orBoth(directions []Direction) []Direction {
	if len(directions) == 0 {
		return []Direction{ToServer, ToClient}
	}
	return directions
}

// Proxy forwards connections to one server. Its methods may be called from
// several goroutines.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup
	trips    roundTrips

	mu      sync.Mutex
	closed  bool
	conns   []*Conn
	faults  [2]faults // for connections to come
	loses   bool      // requests to cancel are lost
	changed broadcast
}

// Start listens on a free port of the loopback interface and forwards
// connections to the TCP address target until [Proxy.Close].
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: listener, faults: [2]faults{noFaults, noFaults}, changed: newBroadcast()}
	p.work.Add(1)
	go p.accept()
	return p, nil
}

// Addr is the address to connect to instead of the server's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN returns a connection URL in which the proxy's address replaces the server's.
func (p *Proxy) DSN(dsn string) (string, error) {
	parsed, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("connection URL: %w", err)
	}
	parsed.Host = p.Addr()
	return parsed.String(), nil
}

// Close cuts all connections and waits for the proxy's goroutines. It is
// idempotent.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	conns := slices.Clone(p.conns)
	p.mu.Unlock()

	err := p.listener.Close()
	for _, conn := range conns {
		conn.Cut()
		conn.end()
	}
	p.work.Wait()
	return err
}

// Connections lists the present connections, oldest first.
func (p *Proxy) Connections() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.conns)
}

// Await waits for a connection that fits and returns the oldest. A connection
// changes while it starts: its names are known after the startup message, its
// PID after authentication.
func (p *Proxy) Await(ctx context.Context, fits func(*Conn) bool) (*Conn, error) {
	for {
		p.mu.Lock()
		changed := p.changed.next()
		conns := slices.Clone(p.conns)
		p.mu.Unlock()
		if i := slices.IndexFunc(conns, fits); i >= 0 {
			return conns[i], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("none of %d connections fits: %w", len(conns), ctx.Err())
		}
	}
}

// AwaitNamed waits for an established connection with this application_name,
// whether it was given at startup or set later.
func (p *Proxy) AwaitNamed(ctx context.Context, applicationName string) (*Conn, error) {
	conn, err := p.Await(ctx, func(c *Conn) bool { return c.PID() != 0 && c.ApplicationName() == applicationName })
	if err != nil {
		return nil, fmt.Errorf("wait for %q: %w", applicationName, err)
	}
	return conn, nil
}

// Stall stalls all connections, present and future; see [Conn.Stall].
func (p *Proxy) Stall(directions ...Direction) {
	p.setAll(directions, func(f *faults) { f.stalled = true })
}

// Resume ends what Stall began.
func (p *Proxy) Resume(directions ...Direction) {
	p.setAll(directions, func(f *faults) { f.stalled = false })
}

// Delay delays all connections, present and future; see [Conn.Delay].
func (p *Proxy) Delay(delay time.Duration, directions ...Direction) {
	p.setAll(directions, func(f *faults) { f.delay = delay })
}

// LoseCancelRequests makes all requests to cancel a statement that come from now
// on end at the proxy with an RST, as where a network fails at the wrong moment.
func (p *Proxy) LoseCancelRequests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = true
}

func (p *Proxy) setAll(directions []Direction, change func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, direction := range orBoth(directions) {
		change(&p.faults[direction])
		for _, conn := range p.conns {
			conn.links[direction].set(change)
		}
	}
}

func (p *Proxy) accept() {
	defer p.work.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		p.work.Add(1)
		go p.serve(client.(*net.TCPConn))
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	defer p.work.Done()
	dialed, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		reset(client) // as the server's own machine would answer
		return
	}
	conn, ok := p.add(client, dialed.(*net.TCPConn))
	if !ok {
		return
	}
	conn.run()
	p.remove(conn)
}

func (p *Proxy) add(client, server *net.TCPConn) (*Conn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		reset(client)
		reset(server)
		return nil, false
	}
	conn := newConn(p, client, server)
	p.conns = append(p.conns, conn)
	p.changed.send()
	return conn, true
}

func (p *Proxy) remove(conn *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = slices.DeleteFunc(p.conns, func(c *Conn) bool { return c == conn })
	p.changed.send()
}

// notice makes the callers that wait in Await look again.
func (p *Proxy) notice() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.send()
}

// broadcast wakes everybody who waits for a change of what a mutex guards. Its
// methods are called with that mutex held.
type broadcast struct{ channel chan struct{} }

func newBroadcast() broadcast { return broadcast{make(chan struct{})} }

// next returns a channel that the next send closes.
func (b *broadcast) next() <-chan struct{} { return b.channel }

func (b *broadcast) send() {
	close(b.channel)
	b.channel = make(chan struct{})
}
