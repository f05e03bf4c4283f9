package tenure

import (
	"context"
	"fmt"
	"sync"

	"github.com/exactly-one/tenure/internal/usercode"
)

// loadSampler calls Config.Load on a separate goroutine: if the function
// blocks, one heartbeat waits briefly and later ones not at all.
type loadSampler struct {
	mu      sync.Mutex // a leaf: Config.Load is not called under it
	last    Load
	calling bool
}

// maxWaitDivisor bounds how long a session waits for user code: a
// RefreshInterval divided by it. No result depends on this wait.
const maxWaitDivisor = 20

// measureLoad calls Config.Load and waits for the result, for a bounded time.
// It is for a node without a session, which may have no goroutine that Close waits for. So
// Close waits for this call, and a node that closes measures nothing.
func (n *Node) measureLoad(ctx context.Context) {
	n.mu.Lock()
	if n.closing {
		n.mu.Unlock()
		return
	}
	n.group.Add(1)
	n.mu.Unlock()
	defer n.group.Done()
	late, cancel := context.WithCancel(ctx)
	defer cancel()
	defer n.clock.AfterFunc(n.cfg.RefreshInterval/maxWaitDivisor, cancel)()
	if returned := n.callLoad(); returned != nil {
		select {
		case <-returned:
		case <-late.Done():
		}
	}
}

// lastLoad returns the last result of Config.Load.
func (n *Node) lastLoad() Load {
	n.sampler.mu.Lock()
	defer n.sampler.mu.Unlock()
	return n.sampler.last
}

// callLoad calls Config.Load on a new goroutine. It returns nil if there is no
// such function, or if a call is still in progress.
func (n *Node) callLoad() (returned <-chan struct{}) {
	if n.cfg.Load == nil {
		return nil
	}
	s := &n.sampler
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calling {
		return nil
	}
	s.calling = true
	done := make(chan struct{})
	n.group.Go(func() { // exits when Config.Load returns; Close waits through n.group
		defer close(done)
		var load Load
		err := catchPanic("the function Load", func() { load = n.cfg.Load() })
		if err != nil {
			n.log.Error("measuring the load failed", "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calling = false
		if err == nil {
			s.last = load.published()
		}
	})
	return done
}

// catchPanic calls fn, user code, and returns a panic or the end of the goroutine as an
// error.
func catchPanic(what string, fn func()) error {
	if reason, _ := usercode.Call(fn); reason != nil {
		return fmt.Errorf("%s panicked: %v", what, reason)
	}
	return nil
}
