package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/wakeup"
)

var (
	errReset   = errors.New("connection reset by peer")
	errAborted = errors.New("aborted")
	errKilled  = errors.New("the process is dead")
)

// session is the client's end of a session.
type session struct {
	process *Process
	world   *World
	opening tenure.SessionOptions
	rnd     *stream
	backend *backend // nil until the server has accepted the connection
	up      *link
	down    *link

	news chan struct{} // holds a value when a notification has arrived
	// nodeNews is the same for notifications that make no role vacant.
	nodeNews chan struct{}
	lost     chan struct{} // closed when the client knows that the connection has ended
	cause    error         // why
	hungUp   bool          // the client has closed the connection

	undescribed bool // the registry may not have the node's latest description
	notifying   bool // a notification that it has released locks is in flight

	// roles is what this session holds. Only the goroutine that owns the session
	// changes it.
	roles map[string]*heldRole
}

var _ tenure.Session = (*session)(nil)

// Incarnation implements tenure.Session.
func (s *session) Incarnation() int64 { return s.backend.incarnation }

// noticed handles a notification, with World.mu held.
func (s *session) noticed() {
	wakeup.Send(s.news)
}

// noticedNodes is noticed for notifications about nodes only.
func (s *session) noticedNodes() {
	wakeup.Send(s.nodeNews)
}

// disconnected handles the end of the connection, with World.mu held.
func (s *session) disconnected(why error) {
	if s.cause != nil {
		return
	}
	s.process.log("session lost: %v", why)
	s.cause = fmt.Errorf("%w: %w: %w", tenure.ErrSessionLost, tenure.ErrConnection, why)
	close(s.lost)
	s.world.checker.checkSoon()
}

// disconnect closes the connection from the client's side, with World.mu held. The
// server notices, unless the whole machine vanished.
func (s *session) disconnect(vanish bool) {
	if s.hungUp {
		return
	}
	s.hungUp = true
	if s.cause == nil {
		s.cause = fmt.Errorf("%w: %w: %w", tenure.ErrSessionLost, tenure.ErrConnection, errAborted)
		close(s.lost)
	}
	s.process.sessions = slices.DeleteFunc(s.process.sessions, func(other *session) bool { return other == s })
	s.down.close()
	if vanish {
		s.up.close()
		return
	}
	s.up.send(func() {
		s.up.close()
		if s.backend != nil {
			s.backend.disconnect()
		}
	})
}

// Abort implements tenure.Session.
func (s *session) Abort() {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.process.gate.pass(func() {
		if s.hungUp {
			return
		}
		if s.cause == nil {
			s.process.log("closes its session")
		}
		s.world.checker.aborted(s)
		s.disconnect(false)
	})
}

// call performs one statement and waits for its answer, without a deadline.
func (s *session) call(name string, effect func(*backend) error) error {
	s.process.gate.wait(s.rnd)
	if !s.opening.MaySend() {
		return fmt.Errorf("%s: %w: trust has ended", name, tenure.ErrSessionLost)
	}
	answer := make(chan error, 1)
	st := &statement{name: name, effect: effect, answer: func(err error) { answer <- err }}
	s.world.mu.Lock()
	if s.cause != nil {
		s.world.mu.Unlock()
		return fmt.Errorf("%s: %w", name, s.cause)
	}
	s.up.send(func() { s.backend.receive(st) })
	s.world.mu.Unlock()

	var err error
	select {
	case err = <-answer:
	case <-s.lost:
	}
	s.process.gate.wait(s.rnd)
	select {
	case err = <-answer: // it arrived before the connection ended
	default:
		if err == nil {
			err = s.lossError()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// lossError returns why the connection ended, or nil.
func (s *session) lossError() error {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	return s.cause
}

// Heartbeat implements tenure.Session.
func (s *session) Heartbeat(load tenure.Load) (requestsPending bool, err error) {
	var pending bool // not the named result: after an error it may still be written
	err = s.call("heartbeat", func(b *backend) (err error) {
		pending, err = b.heartbeat(load)
		if b.server.defects.Relock {
			b.relock()
		}
		return err
	})
	if err != nil {
		return false, err // the statement may still take effect
	}
	return pending, nil
}

// Requests implements tenure.Session.
func (s *session) Requests() ([]tenure.Request, error) {
	var requests []tenure.Request
	var offered []offer
	err := s.call("requests", func(b *backend) error {
		requests, offered = b.takeRequests(), b.takeOffers()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return requests, s.answer(offered)
}

// Wait implements tenure.Session.
func (s *session) Wait(ctx context.Context) (bool, error) {
	s.process.gate.wait(s.rnd)
	news, nodes := s.await(ctx)
	for ; nodes; news, nodes = s.await(ctx) {
		s.process.gate.wait(s.rnd)
		if changed := s.opening.NodesChanged; changed != nil {
			changed()
		}
	}
	s.process.gate.wait(s.rnd)
	if err := s.lossError(); err != nil {
		return false, fmt.Errorf("wait: %w", err)
	}
	return news, nil
}

// await waits for a notification, for one about nodes only, or for the end of the
// session. It checks them in that order first, so that a choice between several does
// not depend on chance.
func (s *session) await(ctx context.Context) (news, nodes bool) {
	select {
	case <-s.news:
		return true, false
	default:
	}
	select {
	case <-s.nodeNews:
		return false, true
	default:
	}
	select {
	case <-s.lost:
	case <-s.news:
		news = true
	case <-s.nodeNews:
		nodes = true
	case <-ctx.Done():
	}
	return news, nodes
}

// notifyReleased notifies the other nodes, in a separate statement, that this session
// has released locks.
func (s *session) notifyReleased() error {
	s.setNotifying(true)
	defer s.setNotifying(false)
	return s.call("notify", func(b *backend) error {
		b.server.notify()
		return nil
	})
}

func (s *session) setNotifying(notifying bool) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.notifying = notifying
}

// Close implements tenure.Session.
func (s *session) Close() error {
	s.world.mu.Lock()
	s.world.checker.closing(s)
	s.world.mu.Unlock()
	err := s.call("leave", func(b *backend) error {
		b.leave()
		return nil
	})
	if err == nil {
		err = s.notifyReleased()
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.disconnect(false)
	return err
}
