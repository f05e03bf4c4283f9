package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// defaultStopTimeout is the default of tenure.Config.
const defaultStopTimeout = 10 * time.Second

// withForce sets the default of ForceAfter for a node with this lease and
// configured stop timeout.
func (c ShutdownConfig) withForce(lease, stopTimeout time.Duration) ShutdownConfig {
	c.ForceAfter = cmp.Or(c.ForceAfter, c.DrainTimeout+cmp.Or(stopTimeout, defaultStopTimeout)+2*lease)
	return c
}

// SetShutdown changes how the member drains and leaves; zero fields get the defaults of
// [ShutdownConfig]. A drain or shutdown in progress keeps its time limits. If the error
// matches tenure.ErrInvalidConfig, nothing has changed.
func (m *Member) SetShutdown(config ShutdownConfig) error {
	next := Config{Shutdown: config}.withDefaults()
	if err := next.validate(); err != nil {
		return err
	}
	m.setShutdown(next.Shutdown)
	return nil
}

// setShutdown stores a validated configuration.
func (m *Member) setShutdown(config ShutdownConfig) {
	config = config.withForce(m.node.Timing().Lease, m.stopTimeout)
	m.policy.Store(&config)
}

// ShutdownRequested reports whether the member is leaving or has left.
func (m *Member) ShutdownRequested() bool { return m.drainState.leaving() }

// Stopping returns a channel that is closed when the member begins to leave: finish work
// in flight and accept no new work.
func (m *Member) Stopping() <-chan struct{} { return m.drainState.serviceCtx.Done() }

// AcceptsWork reports whether the node may accept new work: it is active and
// neither drains nor leaves. Work that uses [InFlight] need not call it.
func (m *Member) AcceptsWork() bool {
	return !m.ShutdownRequested() && !m.InFlight().Draining() && m.node.Description().Status.AcceptsWork()
}

// Shutdown leaves the cluster gracefully and closes the node. In this order, it
//
//   - refuses new work,
//   - closes the channel of [Member.Stopping],
//   - publishes the status draining,
//   - waits for work in flight, at most ShutdownConfig.DrainTimeout,
//   - releases every role, or hands it over as ShutdownConfig says,
//   - removes the node from the registry and ends its session.
//
// After ShutdownConfig.ForceAfter, or when the context of a caller ends, the shutdown is
// forced: the session is closed, and every role is released even if work is still running.
// Then the error matches tenure.ErrShutdown and names the remaining roles and work. It
// also matches tenure.ErrWorkRunning if work was still running. All calls wait for the
// same shutdown and return the same error. Shutdown waits for callbacks, so it must not be
// called from one.
func (m *Member) Shutdown(ctx context.Context) error {
	s, first, forced := m.drainState.beginShutdown()
	defer context.AfterFunc(ctx, func() { s.force(context.Cause(ctx)) })()
	if first {
		limit := m.policy.Load().ForceAfter
		stop := m.node.Clock().AfterFunc(limit, func() { s.force(fmt.Errorf("forced after %v", limit)) })
		s.err = m.performShutdown(forced)
		stop()
		s.force(nil)
		close(s.finished)
	}
	<-s.finished
	return s.err
}

func (m *Member) performShutdown(ctx context.Context) error {
	run, err := m.startDrain(ctx, tenure.Request{}, true)
	if err == nil {
		err = m.awaitDrain(ctx, run)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, tenure.ErrShutdown) {
		m.node.Logger().Warn("draining failed; leaving without it", "error", err)
	}
	err = m.Close(ctx)
	return errors.Join(err, m.workLeftError("shut down"))
}

// awaitDrain waits until the node may be closed. Without a session it waits for work in
// flight only, since there are no roles to hand over.
func (m *Member) awaitDrain(ctx context.Context, run *drain) error {
	wakeups, stop := m.node.Subscribe()
	defer stop()
	worked := run.workEnded
	for {
		select {
		case <-run.done:
			return run.err
		case <-worked:
			worked = nil
		case <-wakeups: // also wakes up when the session has ended
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if worked == nil && !m.node.Connected() {
			return nil
		}
	}
}
