package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// session is a node's session with the agent. One goroutine calls its methods,
// except Abort and LockConn.
type session struct {
	conn        *net.UnixConn
	options     tenure.SessionOptions
	incarnation int64
	limit       clocks.Instant // when trust ends at the latest

	answers chan wire.Answer
	changed chan struct{} // has a value after an event that Wait has not reported
	lost    chan struct{} // closed when the connection has failed; cause is set before
	cause   error
	abort   func()
}

var _ tenure.Session = (*session)(nil)

// open opens a session on a new connection.
func open(conn *net.UnixConn, options tenure.SessionOptions, grace time.Duration) (*session, error) {
	before := wire.Now()
	described := options.Description
	err := wire.Write(conn, wire.Call{Version: wire.Version, Op: wire.OpOpen, Open: &wire.Open{
		Node: options.Node, Lease: options.Timing.Lease, Refresh: options.Timing.RefreshInterval,
		Settle: options.Timing.Settle, FailoverWait: options.Timing.FailoverWait, Grace: grace,
		Address: described.Address, HTTPPort: described.HTTPPort, GRPCPort: described.GRPCPort, Labels: described.Labels,
	}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tenure.ErrConnection, err)
	}
	var answer wire.Answer
	release, err := wire.ReadWith(conn, &answer)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", tenure.ErrConnection, err)
	case answer.Err != nil:
		err = answer.Err.Decode()
	case answer.Opened == nil:
		err = fmt.Errorf("%w: the agent speaks another protocol", tenure.ErrRefused)
	case answer.Opened.Now < before || answer.Opened.Now > wire.Now():
		err = fmt.Errorf("%w: the agent's boot clock differs from this process's: run both in one time namespace", tenure.ErrRefused)
	}
	if err != nil {
		release()
		return nil, err
	}
	s := &session{
		conn: conn, options: options, incarnation: answer.Opened.Incarnation,
		answers: make(chan wire.Answer, 1), changed: make(chan struct{}, 1), lost: make(chan struct{}),
		abort: sync.OnceFunc(func() {
			_ = conn.Close() // ends receive
			release()
		}),
	}
	go s.receive() // exits when the connection ends; Abort ends it
	return s, nil
}

// receive passes the agent's messages on until the connection ends.
func (s *session) receive() {
	defer close(s.lost)
	for {
		var answer wire.Answer
		err := wire.Read(s.conn, &answer)
		switch {
		case err != nil:
			s.cause = fmt.Errorf("%w: the connection to the agent ended: %w", tenure.ErrSessionLost, err)
			return
		case answer.Event == wire.EventLost:
			s.cause = sessionLost(answer.Err.Decode())
			return
		case answer.Event != "":
			wakeup.Send(s.changed)
		default:
			select {
			case s.answers <- answer:
			default:
				s.cause = fmt.Errorf("%w: the agent sent an answer without a call", tenure.ErrSessionLost)
				return
			}
		}
	}
}

// sessionLost returns an error matching ErrSessionLost and not ErrConnection. While this
// node has the duplicate of the agent's connection, the agent keeps its locks and roles.
// So the engine must not abort before the work has returned.
func sessionLost(err error) error {
	if errors.Is(err, tenure.ErrSuperseded) {
		return fmt.Errorf("%w: %s", tenure.ErrSuperseded, err.Error())
	}
	return fmt.Errorf("%w: the agent: %s", tenure.ErrSessionLost, err.Error())
}

// call sends a call and waits for its answer, without a deadline.
func (s *session) call(call wire.Call) (wire.Answer, error) {
	if !s.options.MaySend() {
		return wire.Answer{}, fmt.Errorf("%w: %s was not sent: trust has ended", tenure.ErrSessionLost, call.Op)
	}
	call.Version = wire.Version
	if err := wire.Write(s.conn, call); err != nil {
		return wire.Answer{}, fmt.Errorf("%s: %w: %w", call.Op, tenure.ErrSessionLost, err)
	}
	select {
	case answer := <-s.answers:
		return answer, s.answerError(call.Op, answer)
	case <-s.lost:
		return wire.Answer{}, fmt.Errorf("%s: %w", call.Op, s.cause)
	}
}

func (s *session) answerError(op string, answer wire.Answer) error {
	err := answer.Err.Decode()
	if errors.Is(err, tenure.ErrSessionLost) {
		err = sessionLost(err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// Incarnation implements [tenure.Session].
func (s *session) Incarnation() int64 { return s.incarnation }

// TryAcquire implements [tenure.Session].
func (s *session) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	call := wire.Call{Op: wire.OpAcquire, Acquire: make([]wire.Acquire, len(requests))}
	for i, r := range requests {
		call.Acquire[i] = wire.Acquire{Role: wire.NewRole(r.Role), Recovering: r.Recovering, YieldFor: r.YieldFor, YieldTerm: r.YieldTerm}
	}
	answer, err := s.call(call)
	if err != nil {
		return nil, err
	}
	if len(answer.Results) != len(requests) {
		return nil, fmt.Errorf("%s: %w: the agent sent %d results for %d requests", call.Op, tenure.ErrSessionLost, len(answer.Results), len(requests))
	}
	results := make([]tenure.AcquireResult, len(requests))
	for i, r := range answer.Results {
		results[i] = r.Decode()
	}
	return results, nil
}

// Heartbeat implements [tenure.Session].
func (s *session) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	answer, err := s.call(wire.Call{Op: wire.OpHeartbeat, Load: &load})
	if err != nil {
		return false, err
	}
	// The node's clocks are read first: a pause in between only shortens trust.
	now := s.options.Clock.Now()
	s.limit = now.Add(answer.Until.Sub(wire.Now()))
	return answer.Pending, nil
}

// TrustLimit is the optional method of a [tenure.Session]: trust ends when the
// agent's does, as of the last heartbeat.
func (s *session) TrustLimit() clocks.Instant { return s.limit }

// Release implements [tenure.Session]. After an error some roles may be released
// and others not; the engine then ends the session.
func (s *session) Release(releases []tenure.ReleaseRequest) error {
	for some := range slices.Chunk(releases, wire.MaxRoles) {
		if err := s.releaseSome(some); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) releaseSome(releases []tenure.ReleaseRequest) error {
	call := wire.Call{Op: wire.OpRelease, Releases: make([]wire.Release, len(releases))}
	for i, r := range releases {
		call.Releases[i] = wire.Release{
			Role: wire.NewRole(r.Role), Term: r.Term, Reason: r.Reason, By: r.By, Target: r.Target, Reservation: r.Reservation,
			Cause: r.Cause, NextIn: r.NextIn,
		}
	}
	_, err := s.call(call)
	return err
}

// Requests implements [tenure.Session].
func (s *session) Requests() ([]tenure.Request, error) {
	answer, err := s.call(wire.Call{Op: wire.OpRequests})
	return answer.Requests, err
}

// Wait implements [tenure.Session].
func (s *session) Wait(ctx context.Context) (changed bool, err error) {
	select {
	case <-s.lost:
	case <-s.changed:
		changed = true
	case <-ctx.Done():
	}
	select {
	case <-s.lost:
		return false, fmt.Errorf("wait: %w", s.cause)
	default:
		return changed, nil
	}
}

// Close implements [tenure.Session].
func (s *session) Close() error {
	_, err := s.call(wire.Call{Op: wire.OpClose})
	s.Abort()
	return err
}

// Abort implements [tenure.Session]. The agent then releases the node's roles.
func (s *session) Abort() { s.abort() }

// LockConn is the optional method of a [tenure.Session]: the agent keeps the
// node's roles while any process has a duplicate of this connection.
func (s *session) LockConn() (syscall.RawConn, error) { return s.conn.SyscallConn() }
