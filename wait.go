package tenure

import (
	"cmp"
	"context"
	"fmt"
)

// waitFor calls ready, with n.mu held, now and after each change of the
// election, until ready returns true. It returns the context's cause if ctx
// ends first. It holds no mutex while it waits.
func (e *Election) waitFor(ctx context.Context, ready func() bool) error {
	for {
		changed := e.changeUnless(ready)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// changeUnless returns a channel that is closed at the next change of the election, or nil
// if ready returns true.
func (e *Election) changeUnless(ready func() bool) <-chan struct{} {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	if ready() {
		return nil
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// wakeLocked wakes every waitFor after a change of the election.
func (e *Election) wakeLocked() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// awaitFinished waits until a run of the election has ended.
func (e *Election) awaitFinished(ctx context.Context, run uint64) error {
	if err := e.waitFor(ctx, func() bool { return e.finishedLocked(run) }); err != nil {
		return e.unfinished("shut down", err)
	}
	return nil
}

// finishedLocked reports whether a run of the election has ended, with its work
// and locks.
func (e *Election) finishedLocked(run uint64) bool {
	return e.runNumber != run || e.State() == Stopped && e.term == nil && !e.attempt.mayHoldLock()
}

// unfinished returns the error of an operation after its context ended first.
func (e *Election) unfinished(doing string, err error) error {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	unfinished := &unfinishedError{doing: doing, role: e.role, kind: ErrShutdown, cause: err}
	if e.term != nil {
		if running, _ := e.term.workState(); running {
			unfinished.kind, unfinished.unresigned = ErrWorkRunning, e.term.unresigned()
		}
	}
	return unfinished
}

// unfinishedError formats its text when it is read, because its cause is user
// code.
type unfinishedError struct {
	doing       string
	role        Role
	kind, cause error
	unresigned  int64 // the term whose caller has not resigned, or 0
}

func (e *unfinishedError) Error() string {
	if e.unresigned > 0 {
		return fmt.Sprintf("%s %s: %v: Resign was not called for term %d, which has ended: %v", e.doing, e.role, e.kind, e.unresigned, e.cause)
	}
	return fmt.Sprintf("%s %s: %v: %v", e.doing, e.role, e.kind, e.cause)
}

func (e *unfinishedError) Unwrap() []error { return []error{e.kind, e.cause} }

// awaitRelease waits until the term's lock is released or was lost with the
// session.
func (e *Election) awaitRelease(ctx context.Context, term *Term, doing string) error {
	e.node.mu.Lock()
	released := term.releasedLocked()
	e.node.mu.Unlock()
	var err error
	select {
	case <-released:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case <-released:
		e.node.mu.Lock() // what released the role also changes the election's state
		defer e.node.mu.Unlock()
		return term.releaseErr
	default:
		return e.unfinished(doing, err)
	}
}

// stopErrorLocked returns why the election is stopped.
func (e *Election) stopErrorLocked() error {
	if e.err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, e.err)
	}
	return ErrStopped
}

// WaitForLeadership waits until this node leads and returns the term. It also waits for
// the first start, for example by Run in another goroutine. It returns the context's error
// if ctx ends first. It returns ErrStopped if the election has stopped or stops, or if
// Shutdown or Node.Close comes before the first start.
func (e *Election) WaitForLeadership(ctx context.Context) (*Term, error) {
	var (
		term    *Term
		stopped error
	)
	err := e.waitFor(ctx, func() bool {
		term = e.Term()
		if term == nil && e.State() == Stopped && (e.runNumber > 0 || e.stopping) {
			stopped = e.stopErrorLocked()
		}
		return term != nil || stopped != nil
	})
	return term, cmp.Or(stopped, err)
}
