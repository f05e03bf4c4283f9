package tenure

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reportDrained records the node as drained in the registry, unless it was undrained
// since: it may lead again, and drain again. It retries with every new session. While work
// is in flight, it leaves the report to a heartbeat.
func (n *Node) reportDrained(ctx context.Context, undrains int) error {
	changed, stop := n.Subscribe()
	defer stop()
	for {
		if left := n.workInFlight(ctx); left > 0 {
			if !n.reportDrainedLater(undrains) {
				return ErrDrainCanceled
			}
			return fmt.Errorf("drain: %w: %d units of work are in flight", ErrWorkRunning, left)
		}
		undrained := false
		err := n.updateRegistry(ctx, func(d *Description) {
			undrained = d.Status != StatusDraining || n.undrainCount() != undrains
			d.Drained = d.Drained || !undrained
		})
		switch {
		case undrained:
			return ErrDrainCanceled
		case err == nil || ctx.Err() == nil && !errors.Is(err, ErrSessionLost):
			return err
		}
		select {
		case <-changed: // for example, a new session is open
		case <-ctx.Done():
			return fmt.Errorf("drain: %w: %w", ErrShutdown, context.Cause(ctx))
		case <-n.ctx.Done():
			return ErrClosed
		}
	}
}

// workInFlight returns the work in flight, as reported by Config.Load. A heartbeat
// publishes it first: otherwise the registry could show a drained node with work.
func (n *Node) workInFlight(ctx context.Context) int {
	if n.cfg.Load == nil {
		return 0
	}
	if n.refresh(ctx) != nil {
		n.measureLoad(ctx)
	}
	return n.lastLoad().InFlight
}

// reportDrainedLater makes a heartbeat report the drain when the work has ended. It
// returns false if the node was undrained since.
func (n *Node) reportDrainedLater(undrains int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.description.Status != StatusDraining || n.undrains != undrains {
		return false
	}
	n.drainsOn = !n.description.Drained
	if n.drainsOn && n.session != nil {
		n.session.nextBeat = min(n.session.nextBeat, n.clock.Now().Mono+n.beatIntervalLocked())
		n.session.wakeLocked()
	}
	return true
}

// beatIntervalLocked returns the time from one heartbeat to the next. While only
// work in flight keeps the node from being drained, its end is to be seen soon.
func (n *Node) beatIntervalLocked() time.Duration {
	if n.drainsOn {
		return n.cfg.RefreshInterval / 10
	}
	return n.cfg.RefreshInterval
}

// drainEndedLocked marks the node drained if all roles are free and the published load has
// no work in flight.
func (n *Node) drainEndedLocked(published Load) {
	if !n.drainsOn || published.InFlight > 0 {
		return
	}
	for _, e := range n.elections {
		if e.term != nil {
			return
		}
	}
	n.drainsOn = false
	n.description.Drained = true
	n.descriptionVersion++
	n.log.Info("drained")
}

func (n *Node) undrainCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.undrains
}
