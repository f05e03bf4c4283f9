package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// departure is how a member takes itself out of service: drained and back, as
// often as it is asked, or for good.
type departure struct {
	inFlight InFlight

	turn chan struct{} // held by whoever starts a drain or takes one back

	staying context.Context // ends when the member begins to leave for good
	leave   context.CancelCauseFunc

	mu         sync.Mutex
	drain      *drain // the present one, or nil in service
	evacuators []*evacuator
	shutdown   *shutdown // the one that somebody performs, or nil
}

// evacuator prepares the hand-over of roles; see [Member.beforeRelease].
type evacuator struct {
	run func(context.Context) error
}

// drain is one time out of service. Its run, which a goroutine of the member
// performs, ends when the node is drained.
type drain struct {
	until  time.Duration // on the monotonic clock: when waiting for work in flight ends
	cancel context.CancelFunc
	worked chan struct{} // closed when work in flight is not waited for any more
	done   chan struct{} // closed when the run has ended
	err    error         // of the run, once it has ended
	target uuid.UUID     // where roles are handed to, if asked; under the departure's mutex
	by     atomic.Value  // who asked last, a string; nothing if nobody did
}

// note takes up what a request says of a drain. Under the departure's mutex.
func (d *drain) note(request tenure.Request) {
	if request.Target != uuid.Nil {
		d.target = request.Target
	}
	if request.By != "" {
		d.by.Store(request.By)
	}
}

// asker returns who asked last; empty if the node drains by itself.
func (d *drain) asker() string {
	by, _ := d.by.Load().(string)
	return by
}

func newDeparture() *departure {
	d := &departure{turn: make(chan struct{}, 1)}
	d.staying, d.leave = context.WithCancelCause(context.Background())
	return d
}

// InFlight returns what counts the member's work in flight.
func (m *Member) InFlight() *InFlight { return &m.departure.inFlight }

// Drain takes the node out of service while the process lives on: its status
// becomes draining, new work is refused, and work in flight is waited for, at
// most ShutdownConfig.DrainTimeout; then its roles are resigned, or handed over
// as ShutdownConfig says, and the registry calls it drained. It returns then.
// [Member.Undrain] takes the node back, also while Drain runs.
//
// The error matches tenure.ErrWorkRunning if work was still in flight at the
// end, tenure.ErrDrainCanceled if the node was taken back, tenure.ErrStopping if it
// is leaving for good, and tenure.ErrShutdown in all these cases and if the
// context ended first: then what was begun goes on. Calls of several goroutines
// wait for the same drain.
func (m *Member) Drain(ctx context.Context) error { return m.drain(ctx, tenure.Request{}) }

// drain drains the node as was asked, or as it wants itself.
func (m *Member) drain(ctx context.Context, request tenure.Request) error {
	run, err := m.startDrain(ctx, request, false)
	if err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	m.tellAsker(ctx, request.By)
	select {
	case <-run.done:
		return run.err
	case <-ctx.Done():
		return m.unfinished("draining", context.Cause(ctx))
	}
}

// unfinished is the error of an operation that ended too early. It says what is
// left.
func (m *Member) unfinished(doing string, err error) error {
	return fmt.Errorf("%s: %w: %d roles are led and %d pieces of work are in flight: %w",
		doing, tenure.ErrShutdown, m.leads(), m.InFlight().Count(), err)
}

// leads returns how many roles the node leads.
func (m *Member) leads() int {
	leads := 0
	for _, e := range m.node.Elections() {
		if e.IsLeader() {
			leads++
		}
	}
	return leads
}

// startDrain returns the drain in progress, or that has succeeded, or begins
// one. The last target that was named counts, and the last who asked.
func (m *Member) startDrain(ctx context.Context, request tenure.Request, leaving bool) (*drain, error) {
	d := m.departure
	if err := d.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer d.yieldTurn()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving() && !leaving {
		return nil, errLeaving
	}
	if d.drain == nil || d.drain.failed() {
		life, cancel := context.WithCancel(m.life)
		run := &drain{cancel: cancel, worked: make(chan struct{}), done: make(chan struct{})}
		run.until = m.node.Clock().Now().Mono + m.policy.Load().DrainTimeout
		run.note(request) // before it is performed
		d.inFlight.drain()
		begun := m.run(func() {
			defer close(run.done)
			defer cancel()
			run.err = m.performDrain(life, run)
		})
		if !begun {
			cancel()
			return nil, errLeaving
		}
		d.drain = run
	}
	d.drain.note(request)
	return d.drain, nil
}

// leaving reports whether the member leaves for good.
func (d *departure) leaving() bool { return d.staying.Err() != nil }

var errLeaving = fmt.Errorf("%w: %w", tenure.ErrShutdown, tenure.ErrStopping)

// failed reports whether the run has ended and has to be performed again.
func (d *drain) failed() bool {
	select {
	case <-d.done:
		return d.err != nil
	default:
		return false
	}
}

// takeTurn waits for the turn. A turn that is free it takes even if the context
// has ended: then a drain begins and nobody waits for it.
func (d *departure) takeTurn(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *departure) yieldTurn() { <-d.turn }

// performDrain takes the node out of service. Work ends before roles are given
// up.
func (m *Member) performDrain(ctx context.Context, run *drain) error {
	node, log := m.node, m.node.Logger()
	log.Info("draining", "in_flight", m.InFlight().Count(), "leads", m.leads())
	if err := m.tellDraining(ctx, run); err != nil && ctx.Err() == nil {
		log.Warn("telling the others that this node drains failed; they will hear of it when the database answers", "error", err)
	}
	err := m.awaitWork(ctx, run)
	close(run.worked)
	if err != nil {
		return m.interrupted(err)
	}
	m.evacuate(ctx)
	if ctx.Err() != nil {
		return m.interrupted(context.Cause(ctx))
	}
	successor := m.successors(m.departure.destination(run))
	if m.departure.leaving() && successor == nil {
		return m.interrupted(errLeaving) // closing the node resigns the roles
	}
	if err := node.Drain(ctx, successor); err != nil {
		if ctx.Err() != nil {
			return m.interrupted(err)
		}
		return fmt.Errorf("draining: %w", err)
	}
	log.Info("drained", "in_flight", m.InFlight().Count())
	return m.workLeft("draining")
}

// tellPatience is the most that the work waits for the others to be told that the
// node drains, where a refresh interval is not shorter. The session tells them before it frees a role, however long that takes;
// but a database that does not answer must not keep the work from ending.
const tellPatience = time.Second

// tellDraining makes the node draining.
func (m *Member) tellDraining(ctx context.Context, run *drain) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := min(tellPatience, m.node.Timing().RefreshInterval)
	defer m.node.Clock().AfterFunc(patience, func() { cancel(errNotAnswered) })()
	return m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status != Draining {
			d.Status, d.Drained = Draining, false
		}
		d.StatusBy = run.asker()
	})
}

// tellAsker says who has asked a node to drain that drains already. If it
// cannot be told now, the others hear of it when the database answers.
func (m *Member) tellAsker(ctx context.Context, by string) {
	if by == "" {
		return
	}
	_ = m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status == Draining {
			d.StatusBy = by
		}
	})
}

var errNotAnswered = fmt.Errorf("%w: it does not answer", tenure.ErrDatabase)

// destination returns where roles are handed to, if somebody asked.
func (d *departure) destination(run *drain) uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return run.target
}

// interrupted is why a drain did not end.
func (m *Member) interrupted(err error) error {
	switch {
	case m.departure.leaving():
		err = errLeaving
	case errors.Is(err, context.Canceled):
		err = tenure.ErrDrainCanceled
	}
	return fmt.Errorf("draining: %w", err)
}

// awaitWork waits until nothing is in flight or the time for it is over. Its
// error is the context's.
func (m *Member) awaitWork(ctx context.Context, run *drain) error {
	clock, flight := m.node.Clock(), m.InFlight()
	expired := make(chan struct{})
	defer clock.AfterFunc(run.until-clock.Now().Mono, func() { close(expired) })()
	select {
	case <-flight.drain():
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-expired:
		if left := flight.Count(); left > 0 {
			m.node.Logger().Warn("work in flight did not end in time; going on without it",
				"in_flight", left, "drain_timeout", m.policy.Load().DrainTimeout)
		}
	}
	return nil
}

// workLeft is the error of work that is in flight when it should not be.
func (m *Member) workLeft(doing string) error {
	if left := m.InFlight().Count(); left > 0 {
		return fmt.Errorf("%s: %w: %d pieces of work were still in flight after %v",
			doing, tenure.ErrWorkRunning, left, m.policy.Load().DrainTimeout)
	}
	return nil
}

// beforeRelease registers what is done, when the node leaves or drains, between
// the end of work in flight and the release of the roles: to hand some over as
// it was planned. An error is logged. remove ends it.
func (m *Member) beforeRelease(run func(context.Context) error) (remove func()) {
	d, e := m.departure, &evacuator{run}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.evacuators = append(d.evacuators, e)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.evacuators = slices.DeleteFunc(d.evacuators, func(other *evacuator) bool { return other == e })
	}
}

func (m *Member) evacuate(ctx context.Context) {
	m.departure.mu.Lock()
	evacuators := slices.Clone(m.departure.evacuators)
	m.departure.mu.Unlock()
	for _, e := range evacuators {
		if err := e.run(ctx); err != nil && ctx.Err() == nil {
			m.node.Logger().Warn("handing over roles failed; they are resigned", "error", err)
		}
	}
}

// Undrain takes a draining node back into service, also while Drain runs: the
// roles that it has not given up yet it keeps. It returns when the registry has
// it; if it returns an error of tenure.Node.UpdateDescription, the node is back all the
// same, and the registry follows. A node that is leaving for good cannot be
// taken back: the error matches tenure.ErrStopping.
func (m *Member) Undrain(ctx context.Context) error { return m.undrainFor(ctx, "") }

// undrainFor takes the node back as somebody asked.
func (m *Member) undrainFor(ctx context.Context, by string) error {
	d := m.departure
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.staying, func() { cancel(errLeaving) })()
	if err := m.undrain(ctx, by); err != nil {
		return fmt.Errorf("undraining: %w", err)
	}
	return nil
}

func (m *Member) undrain(ctx context.Context, by string) error {
	d := m.departure
	if err := d.takeTurn(ctx); err != nil {
		return err
	}
	defer d.yieldTurn()
	var run *drain
	if !d.change(func() { run = d.interrupt() }) {
		return errLeaving
	}
	if run != nil {
		select {
		case <-run.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if !d.change(func() { d.drain = nil }) {
		return errLeaving
	}
	err := m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status == Draining {
			d.Status, d.Drained, d.StatusBy = m.statusInService(), false, by
		}
	})
	if !d.change(d.inFlight.reopen) {
		return errLeaving
	}
	return err
}

// interrupt cancels the present drain, if there is one. Under the mutex.
func (d *departure) interrupt() *drain {
	if d.drain != nil {
		d.drain.cancel()
	}
	return d.drain
}

// change makes a change unless the member leaves for good.
func (d *departure) change(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving() {
		return false
	}
	do()
	return true
}

// asked does what others have asked of the node.
func (m *Member) asked(ctx context.Context, request tenure.Request) error {
	if request.Kind == tenure.RequestUndrain {
		return m.undrainFor(ctx, request.By)
	}
	return m.drain(ctx, request)
}
