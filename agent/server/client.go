package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// writeTimeout limits the writing of a message. A node has at most one answer and
// one event unread, so if a write must wait, the node's end is broken.
const writeTimeout = 5 * time.Second

// conn has the used methods of the connection of a node, a [net.UnixConn].
type conn interface {
	io.ReadWriteCloser
	CloseWrite() error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// client is a session of a node with the agent. Two goroutines serve it: one reads
// calls and answers them, the other one writes events.
type client struct {
	host        *host
	conn        conn
	node        tenure.NodeInfo
	opened      *wire.Open // how to reach the node
	lease       time.Duration
	incarnation int64
	events      chan struct{} // has a value when an event waits
	closed      chan struct{} // closed when the connection has ended
	writing     sync.Mutex

	// Guarded by host.mu.
	leaseUntil wire.Moment
	superseded bool
	gone       bool  // its roles are released or about to be
	woken      bool  // an event was sent and no call has arrived since
	lostBy     error // why the session is lost, if it is
	requests   []tenure.Request
	load       tenure.Load
}

// join adds a node. Its newest session supersedes the earlier ones. Their roles stay held
// until they end.
func (h *host) join(conn conn, open *wire.Open) (*client, error) {
	t := h.cfg.Timing
	most := t.Lease - t.Margin - t.RefreshInterval
	refused := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w: %s", tenure.ErrRefused, tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case open.Lease <= 0 || open.Lease > 24*time.Hour:
		return nil, refused("the lease of the node is %v", open.Lease)
	case open.Refresh > most:
		return nil, refused("the node's refresh interval is %v; with the agent's lease of %v it must be at most %v", open.Refresh, t.Lease, most)
	case open.Grace > most-open.Refresh:
		return nil, refused("the node's work needs %v to end; with heartbeats every %v and the agent's lease of %v it must be at most %v: give the agent a longer lease",
			open.Grace, open.Refresh, t.Lease, most-open.Refresh)
	case open.Settle > t.Settle:
		return nil, refused("the node's settle is %v; the agent's is %v and must be at least that", open.Settle, t.Settle)
	case open.FailoverWait > max(t.FailoverWait, t.Lease):
		return nil, refused("the node's failover wait is %v; the agent's is %v and must be at least that", open.FailoverWait, max(t.FailoverWait, t.Lease))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isLost() || h.leaving {
		return nil, fmt.Errorf("%w: the agent has no session", tenure.ErrConnection)
	}
	if last := h.clients[open.Node.ID]; last != nil {
		last.superseded = true
	}
	h.incarnations++
	c := &client{
		host: h, conn: conn, node: open.Node, opened: open, lease: open.Lease, incarnation: h.inner.Incarnation()<<32 | h.incarnations,
		events: make(chan struct{}, 1), closed: make(chan struct{}), leaseUntil: h.now().Add(open.Lease),
	}
	h.connected[c], h.clients[open.Node.ID] = struct{}{}, c
	h.wakeLocked() // serve watches another lease
	return c, nil
}

// run serves a node until its connection ends.
func (c *client) run() {
	defer c.host.disconnected(c)
	defer close(c.closed)
	answer := wire.Answer{Opened: &wire.Opened{Incarnation: c.incarnation, Now: c.host.now()}}
	if err := c.writeFirst(answer); err != nil {
		return
	}
	c.host.cfg.Logger.Debug("a node has connected", "name", c.node.Name, "id", c.node.ID)
	go c.writeEvents() // exits when closed is closed
	c.answerCalls()
	// Whatever went wrong, the node may still trust its terms: its roles are released
	// when it has closed its end, or when its lease has expired.
	_ = c.conn.CloseWrite() // fails if the connection has ended
	_, _ = io.Copy(io.Discard, c.conn)
}

// answerCalls answers calls until the connection fails.
func (c *client) answerCalls() {
	for {
		var call wire.Call
		if err := wire.Read(c.conn, &call); err != nil {
			if !errors.Is(err, io.EOF) {
				c.host.cfg.Logger.Warn("reading from a node failed", "name", c.node.Name, "id", c.node.ID, "error", err)
			}
			return
		}
		if !c.write(c.handle(call)) {
			return
		}
	}
}

// writeFirst writes the first answer, with a duplicate of the connection with the agent's
// locks, if there is one: if the agent dies, the server must not free the locks before the
// work of its nodes has returned.
func (c *client) writeFirst(answer wire.Answer) error {
	provider, ok := c.host.inner.(interface {
		LockConn() (syscall.RawConn, error)
	})
	if !ok {
		return wire.Write(c.conn, answer)
	}
	lock, err := provider.LockConn()
	if err != nil {
		return fmt.Errorf("the connection of the agent's session: %w", err)
	}
	if lock == nil {
		return wire.Write(c.conn, answer)
	}
	return wire.WriteWith(c.conn.(*net.UnixConn), answer, lock) // the socket has no others
}

// write writes a message and reports whether it could.
func (c *client) write(answer wire.Answer) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	return wire.WriteWithin(c.conn, answer, writeTimeout) == nil
}

// writeEvents writes events until the connection ends or the session is lost. The
// node closes a lost session when its work has returned, so only this direction
// of the connection is closed.
func (c *client) writeEvents() {
	for {
		select {
		case <-c.closed:
			return
		case <-c.events:
		}
		c.host.mu.Lock()
		lost := c.lostBy
		c.host.mu.Unlock()
		event := wire.Answer{Event: wire.EventWake}
		if lost != nil {
			event = wire.Answer{Event: wire.EventLost, Err: wire.NewError(lost)}
		}
		if !c.write(event) || lost != nil {
			_ = c.conn.CloseWrite() // the node sees the end of the connection
			return
		}
	}
}

// wakeLocked makes the node look for a change. After an event the node makes a call, and
// this call finds later changes too.
func (c *client) wakeLocked() {
	if !c.woken {
		c.woken = true
		c.notify()
	}
}

// loseLocked ends the session. Its roles stay held until the node has closed its
// connection or its lease has expired.
func (c *client) loseLocked(err error) {
	if c.lostBy == nil {
		c.lostBy = err
		c.notify()
	}
}

func (c *client) notify() {
	wakeup.Send(c.events)
}

// arrived renews the lease of a node on arrival of its call.
func (c *client) arrived() error {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	switch now := h.now(); {
	case h.isLost():
		return fmt.Errorf("%w: %w", tenure.ErrSessionLost, h.cause)
	case c.gone || now >= c.leaseUntil:
		return fmt.Errorf("%w: the lease has expired", tenure.ErrSessionLost)
	case c.lostBy != nil:
		return fmt.Errorf("%w: %w", tenure.ErrSessionLost, c.lostBy)
	case c.superseded:
		return fmt.Errorf("%w: the node has a newer session", tenure.ErrSuperseded)
	default:
		c.woken = false
		c.leaseUntil = now.Add(c.lease)
		return nil
	}
}

// handle answers a call. Heartbeats do not wait for the agent's session: its trust limits
// the extended trust of the node.
func (c *client) handle(call wire.Call) wire.Answer {
	if call.Version != wire.Version {
		return wire.Answer{Err: wire.NewError(fmt.Errorf("%w: the node speaks version %d of the protocol, the agent version %d",
			tenure.ErrSessionLost, call.Version, wire.Version))}
	}
	if err := c.arrived(); err != nil {
		return wire.Answer{Err: wire.NewError(err)}
	}
	switch call.Op {
	case wire.OpHeartbeat:
		return c.heartbeat(call.Load)
	case wire.OpRequests:
		return c.takeRequests()
	case wire.OpAcquire, wire.OpRelease, wire.OpClose:
		if len(call.Acquire) > wire.MaxRoles {
			return wire.Answer{Err: wire.NewError(fmt.Errorf("%w: %d roles in one call; at most %d are allowed", tenure.ErrLock, len(call.Acquire), wire.MaxRoles))}
		}
		j := &job{client: c, call: call, answer: make(chan wire.Answer, 1)}
		if !c.host.push(j) {
			return c.host.lostAnswer()
		}
		return <-j.answer
	}
	return wire.Answer{Err: wire.NewError(fmt.Errorf("%w: the agent does not know %q", tenure.ErrUnsupported, call.Op))}
}

// heartbeat answers with the end of the agent's own trust.
func (c *client) heartbeat(load *tenure.Load) wire.Answer {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case c.lostBy != nil: // since its call arrived
		return wire.Answer{Err: wire.NewError(fmt.Errorf("%w: %w", tenure.ErrSessionLost, c.lostBy))}
	case !h.trust.valid():
		return wire.Answer{Err: wire.NewError(fmt.Errorf("%w: the agent's own trust has ended", tenure.ErrSessionLost))}
	}
	if load != nil {
		c.load = *load
	}
	return wire.Answer{Until: h.trust.limit(), Pending: len(c.requests) > 0}
}

// takeRequests answers with the requests for present roles of the node.
func (c *client) takeRequests() wire.Answer {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	requests := slices.DeleteFunc(c.requests, func(r tenure.Request) bool {
		holding := h.held[r.Role]
		return holding == nil || holding.client != c
	})
	c.requests = nil
	return wire.Answer{Requests: requests}
}

// disconnected releases the roles of a node after the end of its connection: its process
// is dead, or its work has returned.
func (h *host) disconnected(c *client) {
	_ = c.conn.Close() // it has ended
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.connected, c)
	h.checkEmptyLocked()
	h.goneLocked(c, history.EndCrashed)
	if h.leaving && len(h.connected) == 0 {
		h.wakeLocked() // goneLocked does not if the node's roles were released before
	}
}

// goneLocked queues the release of a node's roles.
func (h *host) goneLocked(c *client, reason tenure.EndReason) {
	if c.gone || h.isLost() {
		return
	}
	c.gone = true
	h.queue = append(h.queue, &job{client: c, gone: reason})
	h.wakeLocked()
}

// expireLocked releases the roles of nodes with expired leases. It returns when the next
// one does.
func (h *host) expireLocked(now wire.Moment) (next wire.Moment) {
	next = now.Add(h.cfg.Timing.Lease)
	for c := range h.connected {
		switch {
		case c.gone:
		case now >= c.leaseUntil:
			c.loseLocked(fmt.Errorf("%w: the lease has expired", tenure.ErrSessionLost))
			h.goneLocked(c, history.EndLeaseExpired)
		default:
			next = min(next, c.leaseUntil)
		}
	}
	return next
}
