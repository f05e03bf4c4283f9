package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/internal/steps"
)

// serve calls the session until it is lost or left.
func (h *host) serve() {
	defer close(h.done)
	for {
		work, pause := h.next()
		var err error
		switch {
		case work != nil:
			err = work()
		case pause > 0:
			err = h.wait(pause)
		}
		if err != nil {
			h.fail(err)
		}
		if h.isLost() {
			return
		}
	}
}

// next returns the next thing to do, or how long to wait.
func (h *host) next() (work func() error, pause time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	nextExpiry := h.expireLocked(now)
	switch {
	case !h.trust.valid():
		return func() error { return tenure.ErrTrustExpired }, 0
	case now >= h.nextBeat:
		return h.heartbeat, 0
	case len(h.queue) > 0:
		jobs := h.takeLocked()
		return func() error { return h.process(jobs) }, 0
	case h.leaving && len(h.connected) == 0:
		return h.leave, 0
	case h.beatSoon:
		return h.heartbeat, 0
	case h.requestsPending:
		return h.readRequests, 0
	}
	return nil, max(time.Millisecond, min(h.nextBeat, nextExpiry).Sub(now))
}

// takeLocked returns the jobs of the next batch. It has at most wire.MaxRoles roles: a
// heartbeat never waits long.
func (h *host) takeLocked() []*job {
	roles, n := 0, 0
	for n < len(h.queue) {
		roles += len(h.queue[n].call.Acquire)
		if roles > wire.MaxRoles && n > 0 {
			break
		}
		n++
	}
	jobs := h.queue[:n:n]
	h.queue = h.queue[n:]
	return jobs
}

// wait waits for a change, for wakeLocked, or until d has passed.
func (h *host) wait(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	h.mu.Lock()
	if h.wakePending {
		h.wakePending = false
		h.mu.Unlock()
		return nil
	}
	h.interrupt = cancel
	h.mu.Unlock()
	changed, err := h.inner.Wait(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupt, h.wakePending = nil, false
	if changed {
		h.requestsPending = true
		h.changedLocked(nil)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tenure.ErrSessionLost, err)
	}
	return nil
}

// heartbeat proves the session to be live. Trust counts from before it is sent.
func (h *host) heartbeat() error {
	h.mu.Lock()
	h.beatSoon = false
	load := h.loadLocked()
	h.mu.Unlock()
	sent := h.now()
	pending, err := h.inner.Heartbeat(load)
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	t := h.cfg.Timing
	if err == nil {
		h.step(steps.Step{Kind: steps.AgentGetsAnswer, Trust: sent.Add(t.Lease - t.Margin).Sub(h.now())})
	}
	if err == nil && !h.trust.extend(sent.Add(t.Lease-t.Margin)) {
		return tenure.ErrTrustExpired
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// Twice as often as a node: the trust of nodes counts from this heartbeat and
	// must last until their next ones.
	h.nextBeat = sent.Add(t.RefreshInterval / 2)
	if err != nil {
		h.nextBeat = h.now().Add(t.RefreshInterval / 10)
		h.cfg.Logger.Warn("heartbeat failed", "error", err, "trust_remaining", h.trust.remaining())
	}
	h.requestsPending = h.requestsPending || pending
	return nil
}
