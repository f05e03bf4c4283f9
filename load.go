package tenure

import (
	"fmt"
	"sync"
)

// loadSampler calls Config.Load beside the session: a call that blocks costs
// one heartbeat a short wait, and those after it nothing.
type loadSampler struct {
	mu      sync.Mutex // a leaf: Config.Load is not called under it
	last    Load
	calling bool
}

// patience is the part of a refresh interval for which a session waits for code
// of the program. Nothing depends on the answer coming in that time.
const patience = 20

// patiently waits until something has been done, if there is something, but not
// for long. It is called without the node's mutex.
func (n *Node) patiently(done <-chan struct{}) {
	if done == nil {
		return
	}
	late := make(chan struct{})
	defer n.clock.AfterFunc(n.cfg.RefreshInterval/patience, func() { close(late) })()
	select {
	case <-done:
	case <-late:
	}
}

// load returns how busy the node is, or was when Config.Load returned last.
func (n *Node) load() Load {
	if n.cfg.Load == nil {
		return Load{}
	}
	n.patiently(n.callLoad())
	n.sampler.mu.Lock()
	defer n.sampler.mu.Unlock()
	return n.sampler.last
}

// callLoad calls Config.Load on a goroutine of its own, unless a call is still
// in progress; then it returns nil.
func (n *Node) callLoad() (returned <-chan struct{}) {
	s := &n.sampler
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calling {
		return nil
	}
	s.calling = true
	done := make(chan struct{})
	n.group.Go(func() { // ends when Config.Load returns; Close waits for it
		defer close(done)
		var load Load
		err := guarded("the function Load", func() { load = n.cfg.Load() })
		if err != nil {
			n.log.Error("measuring the load failed", "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calling = false
		if err == nil {
			s.last = load
		}
	})
	return done
}

// guarded calls fn, a function of the program, and reports its panic as an
// error.
func guarded(what string, fn func()) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%s panicked: %v", what, reason)
		}
	}()
	fn()
	return nil
}
