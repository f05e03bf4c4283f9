package tenure

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/endreason"
	"github.com/exactly-one/tenure/internal/fsm"
)

// StepDown gives up the role and stays a candidate, unless NoReacquire is set.
// It asks work in flight to end, and returns when the role is free. It returns
// ErrNotLeader if this node does not lead. If ctx ends before the work has
// returned, the error matches ErrWorkRunning; the role stays locked and is
// released when the work returns. The record of the term says resigned; use
// HandleRequest to record a requester.
func (e *Election) StepDown(ctx context.Context) error {
	return e.stepDown(ctx, 0, termEnd{reason: endreason.Resigned, cause: ErrSteppedDown})
}

// HandOver asks the node target whether it campaigns for the role, steps down, and
// reserves the role for the target for one CheckInterval. If the target does not acquire
// the role in this time, any candidate can. The term continues if the target does not
// campaign or does not answer (ErrNotActive), is not a live node (ErrUnknownNode), is this
// node or uuid.Nil, or leads GroupLimit roles of the election's group (ErrInvalidConfig).
func (e *Election) HandOver(ctx context.Context, target uuid.UUID) error {
	if err := e.offer(ctx, target); err != nil {
		return fmt.Errorf("hand over %s: %w", e.role, err)
	}
	return e.stepDown(ctx, 0, termEnd{reason: endreason.HandedOver, cause: ErrHandedOver, target: target})
}

// offer asks the target of a hand-over whether it campaigns for the role: otherwise the
// role would have no leader until the reservation ends. The stop of the node ends it.
func (e *Election) offer(ctx context.Context, target uuid.UUID) error {
	n := e.node
	if err := n.validateTarget(target); err != nil {
		return err
	}
	if e.current.Load() == nil {
		return nil // stepDown returns ErrNotLeader
	}
	if err := e.validateRoom(ctx, target); err != nil {
		return err // the target would decline without this reason
	}
	err := n.backend.Request(ctx, Request{Kind: RequestHandOver, Offer: true, Role: e.role.Name(), Target: target, By: n.cfg.Name})
	if errors.Is(err, ErrNoLeader) {
		return nil // stepDown finds out whether this node still leads
	}
	return err
}

// HandleRequest steps down or hands over as request says, and records
// request.By as the requester. request.Role may be empty. It does not ask the target
// of a hand-over whether it campaigns: [Backend].Request does, before it records the
// request. A request of another kind, or for another role, matches ErrInvalidConfig. If
// request.Term is not the present term, it returns ErrNotLeader.
func (e *Election) HandleRequest(ctx context.Context, request Request) error {
	if request.Role != "" && request.Role != e.role.Name() {
		return fmt.Errorf("%w: the election for %[3]q cannot handle a request for %[2]q", ErrInvalidConfig, request.Role, e.role.Name())
	}
	switch request.Kind {
	case RequestStepDown, RequestHandOver:
		return e.stepDown(ctx, request.Term, request.termEnd())
	default:
		return fmt.Errorf("%w: an election cannot handle a request of kind %q", ErrInvalidConfig, request.Kind)
	}
}

// ForceStepDown is StepDown, except that it aborts the node's session if ctx ends first.
// The abort releases the role although its work may still be running, and ends every other
// term of the node.
func (e *Election) ForceStepDown(ctx context.Context) error {
	err := e.StepDown(ctx)
	if err == nil || !errors.Is(err, ErrShutdown) {
		return err
	}
	n := e.node
	n.mu.Lock()
	if e.term == nil {
		n.mu.Unlock()
		return nil
	}
	n.log.Warn("aborting the session to force a step-down: all terms of this node end", "role", e.role.Name())
	s := e.term.session
	s.endLocked(fmt.Errorf("%w: forced", ErrSteppedDown))
	n.mu.Unlock()
	s.forcesClose()
	s.conn.Abort()
	return nil
}

// stepDown ends the present term. If number is not 0, it ends only the term with this
// number.
func (e *Election) stepDown(ctx context.Context, number int64, why termEnd) error {
	n := e.node
	if why.reason == endreason.HandedOver {
		err := n.validateTarget(why.target)
		if err == nil {
			err = e.validateRoom(ctx, why.target)
		}
		if err != nil {
			return fmt.Errorf("hand over %s: %w", e.role, err)
		}
	}
	n.mu.Lock()
	term := e.term
	if term == nil || number != 0 && number != term.Number() || !term.stopRequested && e.State() != Leading {
		n.mu.Unlock()
		return ErrNotLeader
	}
	e.beginStepDownLocked(why)
	n.mu.Unlock()
	return e.awaitRelease(ctx, term, "step down from")
}

// validateTarget refuses impossible targets of a hand-over.
func (n *Node) validateTarget(target uuid.UUID) error {
	switch target {
	case n.id:
		return fmt.Errorf("%w: the target is this node", ErrInvalidConfig)
	case uuid.Nil:
		return fmt.Errorf("%w: no target is given: name a node, or step down", ErrInvalidConfig)
	default:
		return nil
	}
}

// beginStepDownLocked starts the release of the current term, if this node leads. If trust
// has ended, the term is lost instead.
func (e *Election) beginStepDownLocked(why termEnd) {
	if e.State() != Leading || !e.term.Valid() {
		return
	}
	e.steppingDown = true
	e.stepLocked(fsm.ReleaseRequested, e.term, nil)
	e.term.stopLocked(why)
}
