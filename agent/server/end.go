package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/internal/steps"
)

// watchTrust ends the session when its trust has ended, even while serve is
// blocked. It returns when the session is lost.
func (h *host) watchTrust() {
	for {
		timer := time.NewTimer(max(time.Millisecond, min(h.trust.remaining(), h.cfg.tick())))
		select {
		case <-h.lost:
			timer.Stop()
			return
		case <-timer.C:
		}
		if !h.trust.valid() {
			h.fail(tenure.ErrTrustExpired)
		}
	}
}

// fail gives up the session: trust ends, and then the nodes are notified. They
// close their connections when their work has returned.
func (h *host) fail(err error) {
	h.trust.end()
	h.mu.Lock()
	if h.isLost() {
		h.mu.Unlock()
		return
	}
	h.cause = err
	close(h.lost)
	jobs := h.queue
	h.queue = nil
	for c := range h.connected {
		c.loseLocked(err)
	}
	h.checkEmptyLocked()
	h.wakeLocked()
	h.mu.Unlock()
	for _, j := range jobs {
		j.reply(h.lostAnswer())
	}
	h.group.Go(func() { h.windDown(errors.Is(err, tenure.ErrConnection)) }) // exits within a lease
}

func (j *job) reply(answer wire.Answer) {
	if j.answer != nil {
		j.answer <- answer
	}
}

func (h *host) lostAnswer() wire.Answer {
	return wire.Answer{Err: wire.NewError(fmt.Errorf("%w: %w", tenure.ErrSessionLost, h.cause))}
}

// windDown closes the connection of a lost session when all nodes have closed
// theirs or can no longer trust a term: its end may release the locks. If the
// connection has ended already, it is closed immediately.
func (h *host) windDown(now bool) {
	over := h.trust.limit().Add(h.cfg.Timing.Margin).Sub(h.now())
	if !now && over > 0 {
		timer := time.NewTimer(over)
		defer timer.Stop()
		select {
		case <-h.empty:
		case <-h.closed:
			return
		case <-timer.C:
		}
		h.step(steps.Step{Kind: steps.AgentCloses})
	}
	h.close()
}

// close closes the connection of a lost session.
func (h *host) close() {
	h.closing.Do(func() {
		h.inner.Abort()
		close(h.closed)
	})
}

func (h *host) checkEmptyLocked() {
	if h.isLost() && len(h.connected) == 0 {
		select {
		case <-h.empty:
		default:
			close(h.empty)
		}
	}
}

// errLeft ends serve after the session was closed.
var errLeft = fmt.Errorf("%w: the agent has stopped", tenure.ErrSessionLost)

// leave closes the session gracefully. No node is connected.
func (h *host) leave() error {
	h.step(steps.Step{Kind: steps.AgentCloses})
	if err := h.inner.Close(); err != nil {
		h.cfg.Logger.Warn("leaving failed", "error", err)
	}
	return errLeft
}

// beginLeave ends the sessions of all nodes. serve closes the agent's session
// when they have closed theirs.
func (h *host) beginLeave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaving = true
	for c := range h.connected {
		c.loseLocked(errLeft)
	}
	h.wakeLocked()
}
