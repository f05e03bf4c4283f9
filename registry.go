package tenure

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// UpdateDescription applies change to the node's description and returns when the registry
// has the result. change must not keep its argument; it sets StatusBy to name the
// requester of a new status. With a status other than active the node stops campaigning
// but keeps its terms. An invalid description matches ErrInvalidConfig and changes
// nothing. A description refused by the database matches it too, but was in effect until
// the refusal. After any other error, such as ErrSessionLost or ErrUnsupported, the change
// is in effect and the registry follows when it can. Concurrent calls take effect one
// after another; change is called again if another call was faster.
func (n *Node) UpdateDescription(ctx context.Context, change func(*Description)) error {
	for {
		n.mu.Lock()
		current, version := n.description.clone(), n.descriptionVersion
		n.mu.Unlock()
		next := current.clone()
		next.StatusBy = ""
		change(&next) // without n.mu: user code
		if next.StatusBy == "" && next.Status == current.Status {
			next.StatusBy = current.StatusBy
		}
		if err := next.validate(); err != nil {
			return err
		}
		if written, applied, err := n.applyDescription(next.clone(), version); applied {
			err = awaitWritten(ctx, written, err)
			if errors.Is(err, ErrInvalidConfig) { // no session could be opened with it
				_, _, _ = n.applyDescription(current, version+1) // unless it has been changed since
			}
			return err
		}
	}
}

// applyDescription makes next the node's description if the present one still
// has the given version. written receives the result of the write to the
// registry; it is nil if there is none to wait for.
func (n *Node) applyDescription(next Description, version uint64) (written <-chan error, applied bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.descriptionVersion != version {
		return nil, false, nil
	}
	if next.equal(n.description) && n.registryCurrentLocked() {
		return nil, true, nil
	}
	before := n.description
	n.description = next
	if before.Status == StatusDraining && next.Status != StatusDraining {
		n.undrains++
		n.drainsOn = false
	}
	n.descriptionVersion++
	n.applyRequirementsLocked()
	s := n.session
	if s == nil {
		return nil, true, ErrSessionLost
	}
	if before.Status != next.Status || !maps.Equal(before.Labels, next.Labels) || !slices.Equal(before.Roles, next.Roles) {
		s.cancelAttemptsLocked()
		if n.mayCampaignLocked() {
			s.attemptAllNowLocked()
			s.wakeLocked()
		}
	}
	if s.registry == nil {
		return nil, true, ErrUnsupported
	}
	result := make(chan error, 1)
	s.descriptionWaiters = append(s.descriptionWaiters, result)
	s.describeAt = 0
	s.wakeLocked()
	return result, true, nil
}

// awaitWritten waits until the registry has a description.
func awaitWritten(ctx context.Context, written <-chan error, err error) error {
	if written == nil {
		return err
	}
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Description returns a copy of the node's published description.
func (n *Node) Description() Description {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.description.clone()
}

// registryCurrentLocked reports whether the registry has the present
// description.
func (n *Node) registryCurrentLocked() bool {
	return n.session != nil && n.session.descriptionVersion == n.descriptionVersion
}

// Members reads the registry over the node's session: all nodes, dead ones included. The
// error matches ErrSessionLost while the node has no session, and ErrUnsupported if the
// backend has no registry.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	return callRegistry(ctx, n, RegistrySession.Members)
}

// RefreshMembers is like Members. If the backend can, it reads only the nodes reported as
// changed to the session since the last call of either. The LastHeartbeat, SilentFor and
// load of the other nodes come from an earlier read.
func (n *Node) RefreshMembers(ctx context.Context) ([]Member, error) {
	return callRegistry(ctx, n, func(r RegistrySession) ([]Member, error) {
		if refresher, ok := r.(interface{ RefreshMembers() ([]Member, error) }); ok {
			return refresher.RefreshMembers()
		}
		return r.Members()
	})
}

// Holders reads the leaders and reservations of the named roles over the node's session.
// It leaves out roles with neither. It returns the errors of Members.
func (n *Node) Holders(ctx context.Context, roles []string) ([]RoleHolder, error) {
	return callRegistry(ctx, n, func(r RegistrySession) ([]RoleHolder, error) { return r.Holders(roles) })
}

// callRegistry calls the registry on the session and returns the result. If ctx
// ends first, the result is dropped.
func callRegistry[T any](ctx context.Context, n *Node, read func(RegistrySession) (T, error)) (T, error) {
	result := make(chan T, 1)
	err := n.callOnSession(ctx, func(r RegistrySession) error {
		value, err := read(r)
		if err == nil {
			result <- value
		}
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return <-result, nil
}

// callOnSession runs a function on the session's goroutine and returns its
// result. The end of ctx does not interrupt a call that has begun.
func (n *Node) callOnSession(ctx context.Context, run func(RegistrySession) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n.mu.Lock()
	s := n.session
	switch {
	case n.closing:
		n.mu.Unlock()
		return ErrClosed
	case s == nil:
		n.mu.Unlock()
		return ErrSessionLost
	case s.registry == nil:
		n.mu.Unlock()
		return ErrUnsupported
	}
	c := call{run, make(chan error, 1)}
	s.calls = append(s.calls, c)
	s.wakeLocked()
	n.mu.Unlock()
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runCall runs the first queued call.
func (s *session) runCall() error {
	n := s.node
	n.mu.Lock()
	if len(s.calls) == 0 { // the session has just ended
		n.mu.Unlock()
		return nil
	}
	c := s.calls[0]
	s.calls, s.callers = s.calls[1:], []chan error{c.result}
	n.mu.Unlock()
	err := s.endTrust(c.run(s.registry))
	n.mu.Lock()
	defer n.mu.Unlock()
	s.answerLocked(err)
	return onlySessionLoss(err)
}

// writeDescription writes the node's description to the registry.
func (s *session) writeDescription() error {
	n := s.node
	n.mu.Lock()
	description, version := n.description.clone(), n.descriptionVersion
	s.callers, s.descriptionWaiters = s.descriptionWaiters, nil
	n.mu.Unlock()
	err := s.endTrust(s.registry.WriteDescription(description))
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		s.descriptionVersion = version
		n.notifySubscribersLocked()
	} else if onlySessionLoss(err) == nil {
		n.log.Warn("writing the node's description failed", "error", err)
		if n.descriptionVersion == version { // a change made during the write does not wait
			s.describeAt = n.clock.Now().Mono + n.cfg.RefreshInterval/10
		}
	}
	s.answerLocked(err) // last: the callers must find the version recorded
	return onlySessionLoss(err)
}

// updateRegistry is UpdateDescription for callers without need of a registry.
func (n *Node) updateRegistry(ctx context.Context, change func(*Description)) error {
	if err := n.UpdateDescription(ctx, change); !errors.Is(err, ErrUnsupported) {
		return err
	}
	return nil
}

var errDraining = errors.New("the node is draining")

// tryUpdateRegistry is updateRegistry with a time limit of one RefreshInterval. When it
// ends, the change is in effect and the registry follows when it can.
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

var errRegistryTimeout = errors.New("the registry was not updated in time")
