// Package server is the agent: it holds one session with the database for all nodes of a
// host. They connect to its socket with package agent.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/logqueue"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/internal/wakeup"
)

const (
	firstTimeout = 10 * time.Second // until the first call of a connection
	queryTimeout = 10 * time.Second // of a query without a session
	hostTimeout  = 5 * time.Second  // how long a node waits for the agent's session
	// idleTimeout is how long the nodes of a lost session have to close it before the
	// agent opens the next one: if all have, others need not wait for the old one.
	idleTimeout = 100 * time.Millisecond
)

// server accepts nodes and keeps a session open.
type server struct {
	cfg   Config
	node  uuid.UUID
	steps steps.Recorder // nil except in tests
	clock clocks.Clock
	now   func() wire.Moment // the boot clock
	slots chan struct{}      // one for each connection
	group sync.WaitGroup
	ctx   context.Context // ends with the connections: then no call waits
	end   context.CancelFunc

	// The last opened session, used by keepSession.
	incarnation int64
	ended       <-chan struct{} // closed when it is lost and the work of its terms has returned

	mu sync.Mutex

	// Guarded by mu.
	host    *host
	changed chan struct{} // closed when host or failure changes
	failure error         // of the last attempt to open a session
	conns   map[*net.UnixConn]struct{}
	closing bool
}

// Run runs an agent until ctx ends: then its nodes lose their sessions, and when their
// work has returned, the agent leaves the database. Run calls ready, if it is not nil,
// when the socket is there and the first session is open. If the agent cannot run, the
// error matches ErrRefused or ErrInvalidConfig.
func Run(ctx context.Context, cfg Config, ready func()) error {
	if err := wire.Supported(); err != nil {
		return fmt.Errorf("%w: %w", tenure.ErrRefused, err)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	logger, queue := logqueue.New(cfg.Logger) // a log that blocks delays no node
	cfg.Logger = logger
	s := newServer(cfg, clocks.System(), wire.Now)
	s.steps = steps.From(ctx)
	defer queue.Flush(context.Background(), s.clock)
	defer s.end()
	socket, err := listen(cfg.Path)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	s.group.Go(func() { s.guardSocket(serving, socket) })
	err = s.keepSession(serving, ready)
	end()
	socket.close()
	s.closeAll()
	s.group.Wait()
	return err
}

func newServer(cfg Config, clock clocks.Clock, now func() wire.Moment) *server {
	s := &server{
		cfg: cfg, node: uuid.New(), clock: clock, now: now, slots: make(chan struct{}, cfg.MaxConnections),
		changed: make(chan struct{}), conns: map[*net.UnixConn]struct{}{},
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// keepSession opens sessions until ctx ends, and returns when the connections of all are
// closed. A refusal of the first one is final.
func (s *server) keepSession(ctx context.Context, ready func()) error {
	var hosts sync.WaitGroup
	defer hosts.Wait()
	delay := 100 * time.Millisecond
	series := openlimit.NewSeries(s.clock)
	for {
		attempt := series.Begin(openlimit.Session)
		h, err := s.openHost(ctx, attempt.Limit)
		if h != nil {
			hosts.Go(func() { <-h.closed })
		}
		if ctx.Err() != nil {
			if h != nil {
				s.finish(h)
			}
			return nil
		}
		if err != nil {
			if ready != nil && errors.Is(err, tenure.ErrRefused) {
				return err
			}
			attempt.Fail(err)
			s.cfg.Logger.Warn("opening a session failed", "error", err)
			s.publish(nil, err)
			wakeup.Sleep(ctx, delay)
			delay = min(2*delay, 2*time.Second)
			continue
		}
		delay = 100 * time.Millisecond
		series.Forget()
		s.cfg.Logger.Info("session opened", "incarnation", h.inner.Incarnation())
		s.publish(h, nil)
		if ready != nil {
			ready()
			ready = nil
		}
		select {
		case <-ctx.Done():
			s.finish(h)
			return nil
		case <-h.lost:
		}
		s.publish(nil, h.cause)
		s.cfg.Logger.Warn("session lost", "error", h.cause)
		wakeup.Await(ctx, idleTimeout, h.empty)
	}
}

// openHost opens a session and proves it with a first heartbeat.
func (s *server) openHost(ctx context.Context, limit time.Duration) (*host, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(limit, func() { cancel(openlimit.ErrTimeout) })
	defer timeout.Stop()
	h := newHost(s.cfg, s.node, s.now, &s.group)
	h.steps = s.steps
	hostName, _ := os.Hostname()
	var previous int64
	if wakeup.Closed(s.ended) { // maybe while no session could be opened
		previous = s.incarnation
	}
	inner, err := s.cfg.Backend.Open(ctx, tenure.SessionOptions{
		Node:                tenure.NodeInfo{ID: s.node, Name: s.cfg.Name, Host: hostName},
		Description:         tenure.Description{Status: tenure.StatusActive},
		Timing:              s.cfg.Timing,
		Clock:               s.clock,
		Logger:              s.cfg.Logger,
		PreviousIncarnation: previous,
		MaySend:             h.trust.maySend,
		Extend:              func(d time.Duration) { timeout.Reset(max(d, limit)) },
	})
	if err != nil {
		return nil, openlimit.Explain(ctx, err)
	}
	// The session holds no lock yet, so here a deadline may close the connection.
	defer context.AfterFunc(ctx, inner.Abort)()
	h.inner = inner
	s.incarnation, s.ended = inner.Incarnation(), h.empty
	for {
		if err = h.heartbeat(); err == nil && h.trust.valid() {
			break
		}
		if err != nil || ctx.Err() != nil {
			inner.Abort()
			close(h.empty) // no node has used it
			return nil, openlimit.Explain(ctx, fmt.Errorf("first heartbeat: %w", errors.Join(err, ctx.Err())))
		}
		wakeup.Sleep(ctx, s.cfg.Timing.RefreshInterval/10)
	}
	s.group.Go(h.serve)      // exits when the session is lost
	s.group.Go(h.watchTrust) // exits when the session is lost
	return h, nil
}

// finish ends the session of the agent: its nodes have one lease to return from
// their work. Then none can trust a term, since beginLeave has ended their heartbeats.
func (s *server) finish(h *host) {
	s.publish(nil, errLeft)
	h.beginLeave()
	timer := time.NewTimer(s.cfg.Timing.Lease)
	defer timer.Stop()
	select {
	case <-h.closed: // the session was closed or lost
	case <-timer.C:
		h.fail(errLeft)
		h.step(steps.Step{Kind: steps.AgentCloses, Forced: true})
		h.close()
	}
	<-h.done
}

// publish changes the session for nodes to join.
func (s *server) publish(h *host, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host, s.failure = h, failure
	close(s.changed)
	s.changed = make(chan struct{})
}

// current waits for a session.
func (s *server) current() (*host, error) {
	timer := time.NewTimer(hostTimeout)
	defer timer.Stop()
	for {
		s.mu.Lock()
		h, failure, changed := s.host, s.failure, s.changed
		s.mu.Unlock()
		if h != nil && !h.isLost() {
			return h, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, fmt.Errorf("%w: the agent has no session: %w", tenure.ErrConnection, errors.Join(failure, context.DeadlineExceeded))
		case <-s.ctx.Done():
			return nil, fmt.Errorf("%w: the agent has stopped", tenure.ErrConnection)
		}
	}
}

// accept serves the connections of a listener until it is closed.
func (s *server) accept(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			s.cfg.Logger.Warn("accepting a node failed", "error", err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			s.cfg.Logger.Warn("too many connections: a node was refused", "most", s.cfg.MaxConnections)
			_ = conn.Close() // it has said nothing
			continue
		}
		if !s.add(conn) {
			<-s.slots
			return
		}
		s.group.Go(func() { // exits when the connection ends
			defer func() { <-s.slots }()
			defer s.remove(conn)
			s.serveConn(conn)
		})
	}
}

func (s *server) add(conn *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = conn.Close() // it has said nothing
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *server) remove(conn *net.UnixConn) {
	_ = conn.Close() // also if it has ended
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// closeAll closes all connections and ends the waiting calls. No session is left.
func (s *server) closeAll() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for conn := range s.conns {
		_ = conn.Close() // also if it has ended
	}
}

// serveConn serves one connection of the socket.
func (s *server) serveConn(conn *net.UnixConn) {
	if err := wire.CheckPeer(conn); err != nil {
		s.cfg.Logger.Warn("a connection was refused", "error", err)
		return
	}
	s.serve(conn)
}

// serve serves one connection of a permitted process.
func (s *server) serve(conn conn) {
	var call wire.Call
	_ = conn.SetReadDeadline(time.Now().Add(firstTimeout)) // fails if it is closed, as Read does
	if err := wire.Read(conn, &call); err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if call.Version != wire.Version {
		s.answer(conn, wire.Answer{Err: wire.NewError(fmt.Errorf("%w: the agent speaks version %d of the protocol, the node version %d: run both from one release",
			tenure.ErrRefused, wire.Version, call.Version))})
		return
	}
	if call.Op != wire.OpOpen || call.Open == nil {
		s.answer(conn, s.query(call))
		return
	}
	h, err := s.current()
	var c *client
	if err == nil {
		c, err = h.join(conn, call.Open)
	}
	if err != nil {
		s.answer(conn, wire.Answer{Err: wire.NewError(err)})
		return
	}
	c.run()
}

func (s *server) answer(conn conn, answer wire.Answer) {
	err := wire.WriteWithin(conn, answer, writeTimeout)
	if errors.Is(err, wire.ErrTooLong) { // with more than 10,000 leaders, for example
		err = wire.WriteWithin(conn, wire.Answer{Err: wire.NewError(fmt.Errorf("%w: ask for fewer roles at a time", err))}, writeTimeout)
	}
	if err != nil {
		s.cfg.Logger.Debug("answering failed", "error", err)
	}
}
