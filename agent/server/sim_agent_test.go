package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

var (
	errBusy = errors.New("the database answered with an error")
	errDead = fmt.Errorf("%w: %w: the agent is dead", tenure.ErrSessionLost, tenure.ErrConnection)
	errMark = fmt.Errorf("%w: the node was marked as dead", tenure.ErrSessionLost)
)

// simAgent is one process of an agent.
type simAgent struct {
	world   *simWorld
	server  *server
	process gate // shut while it is stopped
	network gate // shut while nothing gets through to the database
	died    chan struct{}
	ended   chan struct{} // closed when keepSession has returned
	leave   context.CancelFunc
	lose    atomic.Bool // the next heartbeat finds the session lost
	slow    atomic.Bool // answers of the database take long

	mu      sync.Mutex
	nodes   []*simConn     // the nodes' ends of its connections; guarded by mu
	session tenure.Session // the last one; guarded by mu
}

func (w *simWorld) startAgent() *simAgent {
	a := &simAgent{world: w, died: make(chan struct{}), ended: make(chan struct{})}
	a.server = newServer(Config{Backend: simBackend{w.db, a}, Path: "/socket", Logger: w.logger, Timing: w.timing}.withDefaults(), clocks.System(), simNow)
	var ctx context.Context
	ctx, a.leave = context.WithCancel(context.Background())
	w.group.Go(func() { // exits when the agent is asked to end
		defer close(a.ended)
		if err := a.server.keepSession(ctx, nil); err != nil {
			w.t.Errorf("the agent: %v", err)
		}
		a.server.closeAll()
		a.server.group.Wait()
	})
	return a
}

// accept serves the connection of a node.
func (a *simAgent) accept(atNode, atAgent *simConn) {
	a.mu.Lock()
	a.nodes = append(a.nodes, atNode)
	a.mu.Unlock()
	a.world.group.Go(func() { // exits when the connection ends
		defer atAgent.cut()
		a.server.serve(atAgent)
	})
	a.world.group.Go(func() { // exits when the agent ends
		select {
		case <-a.died:
		case <-a.ended:
		}
		atAgent.cut()
	})
}

// kill ends the process. Its connection to the database ends when the last node has
// closed its duplicate.
func (a *simAgent) kill() {
	a.mu.Lock()
	nodes, session := a.nodes, a.session
	a.mu.Unlock()
	close(a.died)
	a.leave()
	a.process.open()
	a.world.group.Go(func() { // exits when all nodes have closed their ends
		for _, n := range nodes {
			for !n.closed() {
				time.Sleep(time.Millisecond)
			}
		}
		a.network.pass(a.world.over)
		if session != nil {
			session.Abort()
		}
	})
}

func (a *simAgent) dead() bool {
	select {
	case <-a.died:
		return true
	default:
		return false
	}
}

// simBackend opens the sessions of one agent.
type simBackend struct {
	tenure.Backend
	agent *simAgent
}

func (b simBackend) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	s := &simSession{agent: b.agent, aborted: make(chan struct{})}
	b.agent.network.pass(ctx.Done())
	b.agent.process.pass(nil)
	if b.agent.dead() {
		return nil, errDead
	}
	inner, err := b.Backend.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	s.Session = inner
	b.agent.mu.Lock()
	defer b.agent.mu.Unlock()
	b.agent.session = inner
	return s, nil
}

// simSession is the session of an agent that can be stopped and cut off.
type simSession struct {
	tenure.Session
	agent   *simAgent
	once    sync.Once
	aborted chan struct{}
}

// call lets one statement through, and its answer.
func (s *simSession) call(statement func() error) error {
	step := func() error {
		s.agent.process.pass(nil)
		s.agent.network.pass(s.aborted)
		time.Sleep(s.agent.world.between(0, time.Millisecond))
		select {
		case <-s.aborted:
			return errDead
		case <-s.agent.died:
			return errDead
		default:
			return nil
		}
	}
	if err := step(); err != nil {
		return err
	}
	answer := statement()
	if s.agent.slow.Load() {
		select {
		case <-time.After(s.agent.world.between(0, s.agent.world.timing.Lease/2)):
		case <-s.aborted:
		}
	}
	if err := step(); err != nil {
		return err
	}
	s.agent.process.pass(nil)
	return answer
}

func (s *simSession) TryAcquire(requests []tenure.AcquireRequest) (results []tenure.AcquireResult, err error) {
	err = s.call(func() (err error) { results, err = s.Session.TryAcquire(requests); return err })
	return results, err
}

func (s *simSession) Heartbeat(load tenure.Load) (pending bool, err error) {
	if s.agent.lose.CompareAndSwap(true, false) {
		return false, errMark
	}
	err = s.call(func() (err error) { pending, err = s.Session.Heartbeat(load); return err })
	return pending, err
}

func (s *simSession) Release(releases []tenure.ReleaseRequest) error {
	return s.call(func() error { return s.Session.Release(releases) })
}

func (s *simSession) Requests() (requests []tenure.Request, err error) {
	err = s.call(func() (err error) { requests, err = s.Session.Requests(); return err })
	return requests, err
}

func (s *simSession) Close() error { return s.call(s.Session.Close) }

func (s *simSession) Wait(ctx context.Context) (bool, error) {
	changed, err := s.Session.Wait(ctx)
	s.agent.process.pass(nil)
	return changed, err
}

// Abort takes effect when the process runs and its packets get through.
func (s *simSession) Abort() {
	s.once.Do(func() {
		close(s.aborted)
		s.agent.world.group.Go(func() { // exits when nothing holds it up
			s.agent.process.pass(nil)
			s.agent.network.pass(s.agent.world.over)
			if !s.agent.dead() { // otherwise the nodes have its connection
				s.Session.Abort()
			}
		})
	})
}
