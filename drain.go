package tenure

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/endreason"
)

// Drain sets the node's status to draining, which stops campaigning, and releases its
// roles gracefully. It hands each role over to the node returned by to; a nil to, or
// uuid.Nil, reserves the role for no node. Drain returns when all roles are free and the
// registry records the node as drained. If the session is lost, it waits for the next one.
// The node stays open, and [Node.Undrain] reverses the drain.
//
// The error matches
//
//   - ErrWorkRunning if all roles are free but Config.Load reports work in flight,
//   - ErrShutdown if ctx ends first, and ErrWorkRunning too if work under a term has not
//     returned,
//   - ErrDrainCanceled if the node is undrained first,
//   - ErrClosed if the node closes.
//
// In the first two cases the drain continues: the node stays draining, and is recorded as
// drained when its work has ended. Other errors are the errors of
// [Node.UpdateDescription].
func (n *Node) Drain(ctx context.Context, to func(role string) uuid.UUID) error {
	n.forgetRequest()
	return n.drain(ctx, "", to)
}

// drain drains the node for the requester by, if any. The latest requester is
// recorded.
func (n *Node) drain(ctx context.Context, by string, to func(role string) uuid.UUID) error {
	// Release the roles even if the registry has not been updated, for example
	// because the database does not answer.
	updateErr := n.tryUpdateRegistry(ctx, func(d *Description) {
		if d.Status != StatusDraining {
			d.Status, d.Drained = StatusDraining, false
		}
		d.StatusBy = by
	})
	elections := n.Elections()
	targets := make(map[*Election]uuid.UUID, len(elections))
	for _, e := range elections {
		if to != nil && e.State() == Leading {
			targets[e] = to(e.role.Name())
		}
	}
	n.dropFullTargets(ctx, targets)
	undrains, err := n.stepDownAll(ctx, elections, targets)
	if errors.Is(err, ErrShutdown) {
		n.reportDrainedLater(undrains)
	}
	if err != nil {
		return err
	}
	if updateErr != nil && ctx.Err() == nil && !errors.Is(updateErr, ErrSessionLost) {
		return updateErr
	}
	return n.reportDrained(ctx, undrains)
}

// stepDownAll steps down from all roles and waits until they are free. It returns
// Node.undrains as of when it asked the terms to end.
func (n *Node) stepDownAll(ctx context.Context, elections []*Election, targets map[*Election]uuid.UUID) (undrains int, failed error) {
	terms, undrains, err := n.beginStepDownAll(elections, targets)
	if err != nil {
		return undrains, err
	}
	for _, term := range terms {
		// After any other error the session is lost, and the lock with it.
		if err := term.election.awaitRelease(ctx, term, "drain"); errors.Is(err, ErrShutdown) {
			failed = errors.Join(failed, err)
		}
	}
	return undrains, failed
}

// beginStepDownAll asks all terms of a draining node to end and returns them.
func (n *Node) beginStepDownAll(elections []*Election, targets map[*Election]uuid.UUID) (terms []*Term, undrains int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.description.Status != StatusDraining {
		return nil, 0, ErrDrainCanceled
	}
	by := n.description.StatusBy
	for _, e := range elections {
		if target := targets[e]; target == uuid.Nil || target == n.id {
			e.beginStepDownLocked(termEnd{reason: endreason.SteppedDown, cause: withDetail(ErrSteppedDown, errDraining), by: by})
		} else {
			e.beginStepDownLocked(termEnd{reason: endreason.HandedOver, cause: withDetail(ErrHandedOver, errDraining), target: target, by: by})
		}
		if e.term != nil {
			terms = append(terms, e.term)
		}
	}
	return terms, n.undrains, nil
}

// Undrain makes a draining node active again. It returns the errors of
// [Node.UpdateDescription].
func (n *Node) Undrain(ctx context.Context) error {
	n.forgetRequest()
	return n.undrain(ctx, "")
}

// undrain makes the node active again for the requester by, if any.
func (n *Node) undrain(ctx context.Context, by string) error {
	return n.updateRegistry(ctx, func(d *Description) {
		if d.Status == StatusDraining {
			d.Status, d.Drained, d.StatusBy = StatusActive, false, by
		}
	})
}

// OnDrain registers fn to handle requests to drain the node (RequestDrain) or to undrain
// it (RequestUndrain), instead of Drain and Undrain. A goroutine of the node calls fn with
// one request at a time, also with the latest earlier request unless Drain or Undrain was
// called since. The context ends when the next request arrives or the node closes. The
// node logs an error of fn. To record the requester, fn sets Description.StatusBy to
// Request.By when it changes the status with UpdateDescription.
func (n *Node) OnDrain(fn func(context.Context, Request) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onDrain = fn
	if earlier := n.ownRequest; earlier != nil && fn != nil {
		n.ownRequest = nil
		n.handleNodeRequestLocked(*earlier)
	}
}

// forgetRequest keeps OnDrain from repeating an outdated request.
func (n *Node) forgetRequest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ownRequest = nil
}

// handleNodeRequestLocked starts to handle a request for the node, after it has
// interrupted the one before.
func (n *Node) handleNodeRequestLocked(r Request) {
	n.log.Info("received a request for the node", "kind", r.Kind, "by", r.By, "target", r.Target)
	if n.closing {
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	last, next := n.nodeRequest, &nodeRequest{cancel, make(chan struct{})}
	n.nodeRequest = next
	handle := n.onDrain
	if handle == nil {
		handle, n.ownRequest = n.applyNodeRequest, &r
	}
	n.group.Add(1)
	// Exits when the handler returns; Close waits through n.group. The handler may
	// wait for the registry, which only the session's goroutine can write.
	go func() {
		defer n.group.Done()
		defer close(next.done)
		defer cancel()
		if last != nil {
			last.cancel()
			<-last.done
		}
		var err error
		if panicked := catchPanic("the function of OnDrain", func() { err = handle(ctx, r) }); panicked != nil {
			err = panicked
		}
		if err != nil && ctx.Err() == nil {
			n.log.Warn("handling a request for the node failed", "kind", r.Kind, "error", err)
		}
		n.rewriteRegistry()
	}()
}

// rewriteRegistry writes the registry once more: the database may have recorded
// another status when the node took the request.
func (n *Node) rewriteRegistry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.descriptionVersion++
	n.wakeSessionLocked()
}

// applyNodeRequest drains or undrains the node.
func (n *Node) applyNodeRequest(ctx context.Context, r Request) error {
	if r.Kind == RequestUndrain {
		return n.undrain(ctx, r.By)
	}
	return n.drain(ctx, r.By, func(string) uuid.UUID { return r.Target })
}
