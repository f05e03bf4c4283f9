package tenure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// call is a function to run on the session, by its goroutine.
type call struct {
	run    func(RegistrySession) error
	result chan error // has room for it
}

// UpdateDescription changes what the node tells the others about itself: change gets
// the present description and must not keep it. StatusBy it gets empty: who
// asked for the last status is not who asks for the next one, so a change of
// the status says anew who asked for it, if somebody did. What follows from the status
// takes effect at once: unless it is active, the node stands for no role; the
// terms that it holds go on. Describe returns when the registry has it. If it
// returns an error, which matches ErrSessionLost while there is no session and
// ErrUnsupported if the backend has no registry, the change stands all the
// same, and the registry follows when it can. A description that cannot be used
// matches ErrInvalidConfig and changes nothing. Calls take effect in some
// order, one after the other: change is called again, with the newer
// description, if another call takes effect in between.
func (n *Node) UpdateDescription(ctx context.Context, change func(*Description)) error {
	for {
		n.mu.Lock()
		present, edition := n.description.clone(), n.descriptionVersion
		n.mu.Unlock()
		next := present.clone()
		next.StatusBy = ""
		change(&next) // the program's: it may call the node, and may panic
		if next.StatusBy == "" && next.Status == present.Status {
			next.StatusBy = present.StatusBy
		}
		if err := next.validate(); err != nil {
			return err
		}
		if written, taken, err := n.applyDescription(next.clone(), edition); taken {
			return awaitWritten(ctx, written, err)
		}
	}
}

// applyDescription makes next the node's description unless there is another edition than
// the given one by now. written receives the result of telling the registry; it
// is nil if there is nothing to wait for.
func (n *Node) applyDescription(next Description, edition uint64) (written <-chan error, taken bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.descriptionVersion != edition {
		return nil, false, nil
	}
	if next.equal(n.description) && n.registryCurrentLocked() {
		return nil, true, nil
	}
	stood := n.mayCampaignLocked()
	n.description = next
	n.descriptionVersion++
	s := n.session
	if s == nil {
		return nil, true, ErrSessionLost
	}
	switch {
	case stood && !n.mayCampaignLocked():
		s.cancelAttemptsLocked()
	case !stood && n.mayCampaignLocked():
		s.attemptAllNowLocked()
		s.wakeLocked()
	}
	if s.registry == nil {
		return nil, true, ErrUnsupported
	}
	answer := make(chan error, 1)
	s.descriptionWaiters = append(s.descriptionWaiters, answer)
	s.describeAt = 0
	s.wakeLocked()
	return answer, true, nil
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

// Description returns what the node tells the others about itself.
func (n *Node) Description() Description {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.description.clone()
}

// mayCampaignLocked reports whether the node may campaign for roles.
func (n *Node) mayCampaignLocked() bool { return n.description.Status == StatusActive }

// registryCurrentLocked reports whether the registry has the present description.
func (n *Node) registryCurrentLocked() bool {
	return n.session != nil && n.session.descriptionVersion == n.descriptionVersion
}

func (d Description) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	switch d.Status {
	case StatusJoining, StatusActive, StatusDraining:
	default:
		return bad("a node cannot call itself %q: its status is joining, active or draining", d.Status)
	}
	for _, port := range []struct {
		name  string
		value int
	}{{"HTTP", d.HTTPPort}, {"gRPC", d.GRPCPort}} {
		if port.value < 0 || port.value > math.MaxUint16 {
			return bad("the %s port is %d; it must be between 1 and 65535, or 0 for none", port.name, port.value)
		}
	}
	if !utf8.ValidString(d.StatusBy) || strings.ContainsRune(d.StatusBy, 0) {
		return bad("%q cannot be told to have asked for a status: it must be UTF-8 without the character NUL", d.StatusBy)
	}
	texts := []string{d.Address, d.Version}
	texts = append(append(texts, d.Roles...), d.Capabilities...)
	for key, value := range d.Labels {
		if key == "" {
			return bad("a label has no name")
		}
		texts = append(texts, key, value)
	}
	for name, weight := range d.Spreads {
		if !(weight > 0) || math.IsInf(weight, 0) {
			return bad("the weight in the spread %q is %v; it must be more than 0", name, weight)
		}
		texts = append(texts, name)
	}
	for _, text := range texts {
		if text != "" && NamedRole(text).Validate() != nil {
			return bad("%q cannot be told of a node: at most %d bytes of UTF-8 without control characters", text, MaxRoleName)
		}
	}
	return nil
}

// Members reads the registry on the node's session: what every node has told
// about itself, the dead among them. It returns an error that matches
// ErrSessionLost while there is no session, and ErrUnsupported if the backend
// has no registry.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	return callRegistry(ctx, n, RegistrySession.Members)
}

// Holders reads on the node's session who leads the named roles, as many as
// there are, or for whom they are reserved. Other roles are left out. Errors are
// those of Members.
func (n *Node) Holders(ctx context.Context, roles []string) ([]RoleHolder, error) {
	return callRegistry(ctx, n, func(r RegistrySession) ([]RoleHolder, error) { return r.Holders(roles) })
}

// callRegistry asks a question on the session. An answer that comes when the context
// has ended goes nowhere.
func callRegistry[T any](ctx context.Context, n *Node, ask func(RegistrySession) (T, error)) (T, error) {
	answer := make(chan T, 1)
	err := n.callOnSession(ctx, func(r RegistrySession) error {
		value, err := ask(r)
		if err == nil {
			answer <- value
		}
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-answer, nil
}

// callOnSession has a function run by the session's goroutine and waits for its
// result. The end of ctx does not interrupt a call that has begun.
func (n *Node) callOnSession(ctx context.Context, ask func(RegistrySession) error) error {
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
	q := call{ask, make(chan error, 1)}
	s.calls = append(s.calls, q)
	s.wakeLocked()
	n.mu.Unlock()
	select {
	case err := <-q.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runCall runs the first call that waits.
func (s *session) runCall() error {
	n := s.node
	n.mu.Lock()
	if len(s.calls) == 0 { // the session was given up a moment ago
		n.mu.Unlock()
		return nil
	}
	q := s.calls[0]
	s.calls = s.calls[1:]
	n.mu.Unlock()
	err := q.run(s.registry)
	q.result <- err
	return onlySessionLoss(err)
}

// writeDescription writes the node's description to the registry.
func (s *session) writeDescription() error {
	n := s.node
	n.mu.Lock()
	description, edition := n.description.clone(), n.descriptionVersion
	describers := s.descriptionWaiters
	s.descriptionWaiters = nil
	n.mu.Unlock()
	err := s.endTrust(s.registry.WriteDescription(description))
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		s.descriptionVersion = edition
		n.notifySubscribersLocked()
	} else if onlySessionLoss(err) == nil {
		n.log.Warn("telling the others about this node failed", "error", err)
		s.describeAt = n.clock.Now().Mono + n.cfg.RefreshInterval/10
	}
	for _, written := range describers { // only now: a caller that goes on finds the edition written
		written <- err
	}
	return onlySessionLoss(err)
}

// failCallsLocked returns an error to every caller that waits for the session.
func (s *session) failCallsLocked(err error) {
	for _, done := range s.heartbeatWaiters {
		done <- err
	}
	for _, q := range s.calls {
		q.result <- err
	}
	for _, written := range s.descriptionWaiters {
		written <- err
	}
	s.heartbeatWaiters, s.calls, s.descriptionWaiters = nil, nil, nil
}

// onlySessionLoss keeps an error that ends the session and drops any other.
func onlySessionLoss(err error) error {
	if errors.Is(err, ErrSessionLost) {
		return err
	}
	return nil
}
