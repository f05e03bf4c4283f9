package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// InFlight returns the counter of the member's work in flight.
func (m *Member) InFlight() *InFlight { return &m.drainState.inFlight }

// Drain drains the node and returns when it is drained; the process continues.
// The status becomes draining, new work is refused, and work in flight may
// finish within ShutdownConfig.DrainTimeout. Then the node releases its roles,
// or hands them over as ShutdownConfig says. [Member.Undrain] reverses a drain,
// also while Drain runs.
//
// The error matches tenure.ErrWorkRunning if work is in flight when the roles are
// free. The node then stays draining, and is drained when the work has ended. The
// error matches tenure.ErrDrainCanceled if the node was undrained, and
// tenure.ErrStopping if the member is leaving. In all these cases, and if ctx
// ends first, it also matches tenure.ErrShutdown. If ctx ends, the drain
// continues. Concurrent calls wait for the same drain.
func (m *Member) Drain(ctx context.Context) error { return m.drain(ctx, tenure.Request{}) }

// drain drains the node for a request; the zero request has no requester.
func (m *Member) drain(ctx context.Context, request tenure.Request) error {
	run, err := m.startDrain(ctx, request, false)
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	m.recordRequester(ctx, request.By)
	select {
	case <-run.done:
		return run.err
	case <-ctx.Done():
		return m.unfinishedError("drain", context.Cause(ctx))
	}
}

// unfinishedError is the error of an operation ended too early. It counts the remaining
// roles and work.
func (m *Member) unfinishedError(doing string, err error) error {
	return fmt.Errorf("%s: %w: %d roles are still led and %d units of work are in flight: %w",
		doing, tenure.ErrShutdown, m.ledRoles(), m.InFlight().Count(), err)
}

// ledRoles returns the number of the node's roles.
func (m *Member) ledRoles() int {
	leads := 0
	for _, e := range m.node.Elections() {
		if e.IsLeader() {
			leads++
		}
	}
	return leads
}

// startDrain returns the running or successful drain, or starts one. The latest target and
// the latest requester are recorded.
func (m *Member) startDrain(ctx context.Context, request tenure.Request, leaving bool) (*drain, error) {
	d := m.drainState
	if err := d.lock(ctx); err != nil {
		return nil, err
	}
	defer d.unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving() && !leaving {
		return nil, errLeaving
	}
	if d.drain == nil || d.drain.failed() {
		runCtx, cancel := context.WithCancel(m.ctx)
		run := &drain{cancel: cancel, workEnded: make(chan struct{}), done: make(chan struct{})}
		run.workDeadline = m.node.Clock().Now().Mono + m.policy.Load().DrainTimeout
		run.recordRequestLocked(request) // before the drain begins
		d.inFlight.drain()
		begun := m.run(func() {
			defer close(run.done)
			defer cancel()
			run.err = m.performDrain(runCtx, run)
		})
		if !begun {
			cancel()
			return nil, errLeaving
		}
		d.drain = run
	}
	d.drain.recordRequestLocked(request)
	return d.drain, nil
}

var errLeaving = fmt.Errorf("%w: %w", tenure.ErrShutdown, tenure.ErrStopping)

// performDrain drains the node. Work returns before roles are released.
func (m *Member) performDrain(ctx context.Context, run *drain) error {
	node, log := m.node, m.node.Logger()
	log.Info("draining", "in_flight", m.InFlight().Count(), "leads", m.ledRoles())
	if err := m.publishDraining(ctx, run); err != nil && ctx.Err() == nil {
		log.Warn("publishing the status draining failed; it is published when the database responds", "error", err)
	}
	err := m.awaitWork(ctx, run)
	close(run.workEnded)
	if err != nil {
		return m.interruptedError(err)
	}
	m.runReleaseHooks(ctx)
	if ctx.Err() != nil {
		return m.interruptedError(context.Cause(ctx))
	}
	successor := m.successors(ctx, m.drainState.handOverTarget(run))
	if m.drainState.leaving() && successor == nil {
		return m.interruptedError(errLeaving) // closing the node resigns the roles
	}
	err = node.Drain(ctx, successor)
	switch {
	case err != nil && ctx.Err() != nil:
		return m.interruptedError(err)
	case errors.Is(err, tenure.ErrWorkRunning): // the node reports that it is drained when the work has ended
		return cmp.Or(m.workLeftError("drain"), err)
	case err != nil:
		return fmt.Errorf("drain: %w", err)
	}
	log.Info("drained")
	return m.workLeftError("drain")
}

// publishTimeout limits how long the drain waits for the registry to show the new status;
// a shorter refresh interval applies instead. The session publishes the status before it
// releases a role, even if the database is slow. But a silent database must not delay the
// end of work.
const publishTimeout = time.Second

// publishDraining sets the node's status to draining.
func (m *Member) publishDraining(ctx context.Context, run *drain) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := min(publishTimeout, m.node.Timing().RefreshInterval)
	defer m.node.Clock().AfterFunc(patience, func() { cancel(errRegistryTimeout) })()
	return m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status != Draining {
			d.Status, d.Drained = Draining, false
		}
		d.StatusBy = run.requester()
	})
}

// recordRequester records the requester of a running drain. If the database does not
// respond, the registry is updated later.
func (m *Member) recordRequester(ctx context.Context, by string) {
	if by == "" {
		return
	}
	_ = m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status == Draining {
			d.StatusBy = by
		}
	})
}

var errRegistryTimeout = fmt.Errorf("%w: it does not respond", dberr.ErrDatabase)

// interruptedError returns the reason why a drain did not finish.
func (m *Member) interruptedError(err error) error {
	switch {
	case m.drainState.leaving():
		err = errLeaving
	case errors.Is(err, context.Canceled):
		err = tenure.ErrDrainCanceled
	}
	return fmt.Errorf("drain: %w", err)
}

// awaitWork waits until no work is in flight or its deadline passes. It returns
// the cause of ctx if ctx ends first.
func (m *Member) awaitWork(ctx context.Context, run *drain) error {
	clock, flight := m.node.Clock(), m.InFlight()
	expired := make(chan struct{})
	defer clock.AfterFunc(run.workDeadline-clock.Now().Mono, func() { close(expired) })()
	select {
	case <-flight.drain():
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-expired:
		if left := flight.Count(); left > 0 {
			m.node.Logger().Warn("work in flight did not finish in time; releasing the roles without it",
				"in_flight", left, "drain_timeout", m.policy.Load().DrainTimeout)
		}
	}
	return nil
}

// workLeftError returns an error if work is in flight, or nil.
func (m *Member) workLeftError(doing string) error {
	if left := m.InFlight().Count(); left > 0 {
		return fmt.Errorf("%s: %w: %d units of work were still in flight after %v",
			doing, tenure.ErrWorkRunning, left, m.policy.Load().DrainTimeout)
	}
	return nil
}

// beforeRelease registers a function to run when the node drains or leaves, after work in
// flight has ended and before roles are released. It can hand roles over according to a
// plan. An error is logged. remove unregisters the function.
func (m *Member) beforeRelease(run func(context.Context) error) (remove func()) {
	d, e := m.drainState, &releaseHook{run}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.releaseHooks = append(d.releaseHooks, e)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.releaseHooks = slices.DeleteFunc(d.releaseHooks, func(other *releaseHook) bool { return other == e })
	}
}

func (m *Member) runReleaseHooks(ctx context.Context) {
	m.drainState.mu.Lock()
	evacuators := slices.Clone(m.drainState.releaseHooks)
	m.drainState.mu.Unlock()
	for _, e := range evacuators {
		if err := e.run(ctx); err != nil && ctx.Err() == nil {
			m.node.Logger().Warn("handing over roles failed; releasing them", "error", err)
		}
	}
}

// Undrain reverses a drain, also while Drain runs. The node keeps the roles it has not yet
// released. Undrain returns when the registry shows the change. After an error of
// tenure.Node.UpdateDescription, also if ctx ends first, the node is undrained and the
// registry is updated later. If the member is leaving, the error matches
// tenure.ErrStopping.
func (m *Member) Undrain(ctx context.Context) error { return m.undrainFor(ctx, "") }

// undrainFor undrains the node for the requester by, if any.
func (m *Member) undrainFor(ctx context.Context, by string) error {
	d := m.drainState
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.serviceCtx, func() { cancel(errLeaving) })()
	if err := m.undrain(ctx, by); err != nil {
		return fmt.Errorf("undrain: %w", err)
	}
	return nil
}

func (m *Member) undrain(ctx context.Context, by string) error {
	d := m.drainState
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	var run *drain
	if !d.unlessLeaving(func() { run = d.cancelDrainLocked() }) {
		return errLeaving
	}
	if run != nil {
		<-run.done // soon, also if ctx has ended: the next drain must not find the canceled one
	}
	if !d.unlessLeaving(func() { d.drain = nil }) {
		return errLeaving
	}
	err := m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status == Draining {
			d.Status, d.Drained, d.StatusBy = m.undrainedStatus(), false, by
		}
	})
	if !d.unlessLeaving(d.inFlight.reopen) {
		return errLeaving
	}
	return err
}

// handleRequest drains or undrains the node as another party requested.
func (m *Member) handleRequest(ctx context.Context, request tenure.Request) error {
	if request.Kind == tenure.RequestUndrain {
		return m.undrainFor(ctx, request.By)
	}
	return m.drain(ctx, request)
}
