package tenure

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/fsm"
)

// Drain takes the node out of service: its status becomes draining, it stands
// for no role any more, and gives up those that it leads, politely, each in
// favor of the node that to names; a nil to, or the answer uuid.Nil, leaves
// the choice to the others. It returns when all are free and the registry says
// that the node is drained: if the session is lost meanwhile, when there is one
// again. The node lives on; [Node.Undrain] takes it back.
//
// If the context ends first, the error matches ErrShutdown, and ErrWorkRunning
// if work under a term has not returned; what was begun goes on. The error is
// ErrDrainCanceled if the node is taken back before the end, and ErrClosed if it
// closes. Other errors are those of Describe.
func (n *Node) Drain(ctx context.Context, to func(role string) uuid.UUID) error {
	return n.drain(ctx, "", to)
}

// drain drains the node as somebody asked; the last who did counts.
func (n *Node) drain(ctx context.Context, by string, to func(role string) uuid.UUID) error {
	// That the registry does not know yet is no reason to keep the roles, nor is
	// a database that does not answer.
	told := n.tryUpdateRegistry(ctx, func(d *Description) {
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
	if err := n.stepDownAll(ctx, elections, targets); err != nil {
		return err
	}
	if told != nil && ctx.Err() == nil && !errors.Is(told, ErrSessionLost) {
		return told
	}
	return n.reportDrained(ctx)
}

// stepDownAll resigns all roles and waits until they are free.
func (n *Node) stepDownAll(ctx context.Context, elections []*Election, targets map[*Election]uuid.UUID) error {
	leaving, err := n.beginStepDownAll(elections, targets)
	if err != nil {
		return err
	}
	var failed error
	for _, term := range leaving {
		// A role that was lost with its session is as free as one released.
		if err := term.election.awaitRelease(ctx, term, "draining"); errors.Is(err, ErrShutdown) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// beginStepDownAll asks all terms of a draining node to end and returns them.
func (n *Node) beginStepDownAll(elections []*Election, targets map[*Election]uuid.UUID) (leaving []*Term, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.description.Status != StatusDraining {
		return nil, ErrDrainCanceled
	}
	by := n.description.StatusBy
	for _, e := range elections {
		if target := targets[e]; target == uuid.Nil || target == n.id {
			e.beginStepDownLocked(termEnd{reason: EndSteppedDown, cause: withDetail(ErrSteppedDown, errDraining), by: by})
		} else {
			e.beginStepDownLocked(termEnd{reason: EndHandedOver, cause: withDetail(ErrHandedOver, errDraining), target: target, by: by})
		}
		if e.term != nil {
			leaving = append(leaving, e.term)
		}
	}
	return leaving, nil
}

// reportDrained returns when the registry says that the node is drained, trying
// again with every new session.
func (n *Node) reportDrained(ctx context.Context) error {
	news, stop := n.Subscribe()
	defer stop()
	for {
		undrained := false
		err := n.updateRegistry(ctx, func(d *Description) {
			undrained = d.Status != StatusDraining
			d.Drained = !undrained
		})
		switch {
		case undrained:
			return ErrDrainCanceled
		case err == nil || ctx.Err() == nil && !errors.Is(err, ErrSessionLost):
			return err
		}
		select {
		case <-news: // among it, that a session stands
		case <-ctx.Done():
			return fmt.Errorf("draining: %w: %w", ErrShutdown, context.Cause(ctx))
		case <-n.ctx.Done():
			return ErrClosed
		}
	}
}

// updateRegistry is Describe where it does not matter whether there is a registry.
func (n *Node) updateRegistry(ctx context.Context, change func(*Description)) error {
	if err := n.UpdateDescription(ctx, change); !errors.Is(err, ErrUnsupported) {
		return err
	}
	return nil
}

var errDraining = errors.New("the node drains")

// tryUpdateRegistry is tell, and waits for the registry no longer than for a heartbeat;
// then the change stands, and the registry follows.
func (n *Node) tryUpdateRegistry(ctx context.Context, change func(*Description)) error {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer n.clock.AfterFunc(n.cfg.RefreshInterval, func() { cancel(errRegistryTimeout) })()
	err := n.updateRegistry(limited, change)
	if errors.Is(err, errRegistryTimeout) {
		return nil
	}
	return err
}

var errRegistryTimeout = errors.New("the registry was not told in time")

// Undrain takes a draining node back into service. Errors are those of
// Describe.
func (n *Node) Undrain(ctx context.Context) error { return n.undrain(ctx, "") }

// undrain takes the node back into service as somebody asked.
func (n *Node) undrain(ctx context.Context, by string) error {
	return n.updateRegistry(ctx, func(d *Description) {
		if d.Status == StatusDraining {
			d.Status, d.Drained, d.StatusBy = StatusActive, false, by
		}
	})
}

// OnDrain registers what is done, instead of Drain and Undrain, when others ask
// the node to drain (RequestDrain) or to come back (RequestUndrain). It is
// called with one request at a time, on a goroutine that the node owns; its
// context ends when the next request arrives, or the node closes. An error is
// logged. For the record of who asked, fn sets Description.StatusBy to
// Request.By when it changes the status with Describe.
func (n *Node) OnDrain(fn func(context.Context, Request) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onDrain = fn
}

// nodeRequest is a request for the node that is in progress.
type nodeRequest struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// handleNodeRequestLocked does what a request asks of the node, after it has
// interrupted the request before.
func (n *Node) handleNodeRequestLocked(r Request) {
	n.log.Info("asked to change its status", "kind", r.Kind, "by", r.By, "target", r.Target)
	if n.closing {
		return
	}
	ctx, cancel := context.WithCancel(n.ctx)
	last, next := n.nodeRequest, &nodeRequest{cancel, make(chan struct{})}
	n.nodeRequest = next
	do := n.onDrain
	if do == nil {
		do = n.applyNodeRequest
	}
	n.group.Add(1)
	go func() { // not the session's goroutine, which has to write what follows
		defer n.group.Done()
		defer close(next.done)
		defer cancel()
		if last != nil {
			last.cancel()
			<-last.done
		}
		if err := do(ctx, r); err != nil && ctx.Err() == nil {
			n.log.Warn("changing the status as asked failed", "kind", r.Kind, "error", err)
		}
		n.rewriteRegistry()
	}()
}

// rewriteRegistry has the registry written once more: the database may have noted a
// status of its own when the node took the request.
func (n *Node) rewriteRegistry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.descriptionVersion++
	n.wakeSessionLocked()
}

func (n *Node) applyNodeRequest(ctx context.Context, r Request) error {
	if r.Kind == RequestUndrain {
		return n.undrain(ctx, r.By)
	}
	return n.drain(ctx, r.By, func(string) uuid.UUID { return r.Target })
}

// cancelAttemptsLocked ends the attempts of a node that is not active any longer.
func (s *session) cancelAttemptsLocked() {
	for e := range s.node.followers {
		if e.attempt.pending && !e.attempt.inFlight {
			s.node.unlockPendingLocked(e)
			e.attemptCanceledLocked()
		}
	}
}

// attemptCanceledLocked records that an attempt ended because the node is not
// active. When it is active again, the next attempt begins. It returns false: the
// retry strategy is not asked.
func (e *Election) attemptCanceledLocked() bool {
	e.attempt.nextAt, e.attempt.quickRetries = math.MaxInt64, 0
	if e.State() == Acquiring {
		e.attempt.totalFailures++
		e.attempt.err = ErrNotActive
		e.stepLocked(fsm.AcquireFailed, nil, ErrNotActive)
	}
	return false
}
