package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// defaultStopTimeout is that of tenure.Config.
const defaultStopTimeout = 10 * time.Second

// withForce fills in ForceAfter for a node with this lease and the stop timeout
// of its configuration.
func (c ShutdownConfig) withForce(lease, stopTimeout time.Duration) ShutdownConfig {
	c.ForceAfter = cmp.Or(c.ForceAfter, c.DrainTimeout+cmp.Or(stopTimeout, defaultStopTimeout)+2*lease)
	return c
}

// SetShutdown changes how the member drains and leaves, with the defaults of
// [ShutdownConfig] for what is 0. A drain or a shutdown that has begun keeps its
// bounds in time. The error matches tenure.ErrInvalidConfig; nothing is changed
// then.
func (m *Member) SetShutdown(config ShutdownConfig) error {
	next := Config{Shutdown: config}.withDefaults()
	if err := next.validate(); err != nil {
		return err
	}
	m.setShutdown(next.Shutdown)
	return nil
}

// setShutdown takes a configuration that was checked and has its defaults.
func (m *Member) setShutdown(config ShutdownConfig) {
	config = config.withForce(m.node.Timing().Lease, m.stopTimeout)
	m.policy.Store(&config)
}

// shutdown is the one time that a member leaves politely.
type shutdown struct {
	force    context.CancelCauseFunc
	finished chan struct{} // closed at the end
	err      error         // once it is finished
}

// ShutdownRequested reports whether the member leaves for good, or has left.
func (m *Member) ShutdownRequested() bool { return m.departure.leaving() }

// Stopping returns a channel that is closed when the member begins to leave for
// good: finish, and take no new work.
func (m *Member) Stopping() <-chan struct{} { return m.departure.staying.Done() }

// AcceptsWork reports whether the node may take new work: it is active, and
// neither drains nor leaves. Work that [InFlight] counts need not ask.
func (m *Member) AcceptsWork() bool {
	return !m.ShutdownRequested() && !m.InFlight().Draining() && m.node.Description().Status.AcceptsWork()
}

// Shutdown leaves the cluster politely and closes the node. In this order: new
// work is refused; [Member.Stopping] is closed; the others are told that the
// node drains; work in flight is waited for, at most
// ShutdownConfig.DrainTimeout; every role is resigned, or handed over as
// ShutdownConfig says; the node leaves the registry and its session ends.
//
// If that takes longer than ShutdownConfig.ForceAfter, or the context of a
// caller ends, it is forced: the session is cut, which frees every role
// whatever still runs. The error matches tenure.ErrShutdown then and says what
// was left, and tenure.ErrWorkRunning if work had not ended. It is idempotent:
// all calls return at the same end with the same error. It waits for callbacks,
// so it must not be called from one.
func (m *Member) Shutdown(ctx context.Context) error {
	s, first, forced := m.departure.begin()
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

// begin returns the shutdown. To the first who asks it gives the context within
// which to perform it.
func (d *departure) begin() (s *shutdown, first bool, forced context.Context) {
	d.refuse()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shutdown == nil {
		first = true
		d.shutdown = &shutdown{finished: make(chan struct{})}
		forced, d.shutdown.force = context.WithCancelCause(context.Background())
	}
	return d.shutdown, first, forced
}

// refuse takes no new work for good, and tells everybody.
func (d *departure) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight.drain()
	d.leave(errLeaving)
}

func (m *Member) performShutdown(ctx context.Context) error {
	run, err := m.startDrain(ctx, tenure.Request{}, true)
	if err == nil {
		err = m.awaitDrain(ctx, run)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, tenure.ErrShutdown) {
		m.node.Logger().Warn("draining failed; leaving all the same", "error", err)
	}
	err = m.Close(ctx)
	return errors.Join(err, m.workLeft("shutting down"))
}

// awaitDrain waits until the node may be closed: without a session that is so
// when work in flight has ended, since there is nothing to hand over.
func (m *Member) awaitDrain(ctx context.Context, run *drain) error {
	news, stop := m.node.Subscribe()
	defer stop()
	worked := run.worked
	for {
		select {
		case <-run.done:
			return run.err
		case <-worked:
			worked = nil
		case <-news: // among it, that the session has ended
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if worked == nil && !m.node.Connected() {
			return nil
		}
	}
}
