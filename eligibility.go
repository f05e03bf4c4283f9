package tenure

import (
	"fmt"
	"maps"
	"slices"

	"github.com/exactly-one/tenure/internal/endreason"
)

// mayCampaignLocked reports whether the node may campaign for roles.
func (n *Node) mayCampaignLocked() bool {
	return n.description.Status == StatusActive && !n.cfg.NoLeader
}

// missing returns the name of a required node role or label that a node does not have.
// Both are empty if the node has all of them.
func (c *ElectionConfig) missing(has *Description) (nodeRole, label string) {
	if c.RequiresNodeRole != "" && !slices.Contains(has.Roles, c.RequiresNodeRole) {
		return c.RequiresNodeRole, ""
	}
	for name, value := range c.Requires {
		if had, ok := has.Labels[name]; !ok || had != value {
			return "", name
		}
	}
	return "", ""
}

// meetsRequirementsLocked reports whether the node has every required label and node role.
func (e *Election) meetsRequirementsLocked() bool {
	nodeRole, label := e.cfg.missing(&e.node.description)
	return nodeRole == "" && label == ""
}

// mayCampaignLocked reports whether the node may campaign for the role.
func (e *Election) mayCampaignLocked() bool {
	return e.meetsRequirementsLocked() && e.node.mayCampaignLocked()
}

// ineligibleLocked returns why the node may not campaign for the role, or nil.
func (e *Election) ineligibleLocked() error {
	nodeRole, label := e.cfg.missing(&e.node.description)
	switch {
	case e.node.cfg.NoLeader:
		return fmt.Errorf("%w: it only watches", ErrNotActive)
	case nodeRole != "":
		return fmt.Errorf("%w for %s: it does not have the node role %s", ErrNotActive, e.role, nodeRole)
	case label != "":
		return fmt.Errorf("%w for %s: it does not have the label %s=%s", ErrNotActive, e.role, label, e.cfg.Requires[label])
	case !e.node.mayCampaignLocked():
		return ErrNotActive
	}
	return nil
}

// applyRequirementsLocked steps down from every role whose requirements the node no longer
// meets. It restarts the wait before a take-over of every role the node does not campaign
// for.
func (n *Node) applyRequirementsLocked() {
	for _, e := range n.elections {
		if !e.mayCampaignLocked() {
			e.takeOver.session = nil
		}
		if e.State() == Leading && !e.meetsRequirementsLocked() {
			reason := e.ineligibleLocked()
			n.log.Warn("stepping down", "role", e.role.Name(), "reason", reason)
			e.beginStepDownLocked(termEnd{reason: endreason.Resigned, cause: withDetail(ErrSteppedDown, reason)})
		}
	}
}

// A reserved role is tried only by its target, so a target that does not campaign would
// leave it vacant. Therefore the target is asked before the term ends: Backend.Request
// delivers an offer to the target's session. The session answers with Node.campaigns in
// the call that reads its requests. Without an answer in a bounded time the hand-over is
// refused.
//
// A stored list of the roles of each node would be stale after each start, drain, failed
// work and loss of a session, and 10,000 roles would rewrite it again and again. An offer
// costs statements only when it is made. Drain and the planned moves of a cluster.Spread
// make no offer: their targets may begin to campaign a moment later, and the reservation
// bounds the vacancy.

// campaigns reports whether the node would try the role when it becomes reserved for the
// node, or leads it already.
func (n *Node) campaigns(role string) bool {
	n.mu.Lock()
	if !n.mayCampaignLocked() {
		n.mu.Unlock()
		return false
	}
	if e := n.elections[role]; e != nil && (e.isPolledLocked() || !e.stopping && e.State() != Stopped) {
		defer n.mu.Unlock()
		return e.acceptsOfferLocked()
	}
	deciders := slices.Collect(maps.Keys(n.offerDeciders))
	n.mu.Unlock()
	return slices.ContainsFunc(deciders, func(accept *func(role string) bool) bool { return n.callOnOffer(*accept, role) })
}

// callOnOffer calls a function of OnOffer, without n.mu because it is user code. If it
// panics, the node declines.
func (n *Node) callOnOffer(accept func(role string) bool, role string) (accepted bool) {
	if err := catchPanic("the function of OnOffer", func() { accepted = accept(role) }); err != nil {
		n.log.Error("deciding about an offer failed", "role", role, "error", err)
		return false
	}
	return accepted
}

// acceptsOfferLocked reports whether the election leads the role or would try it soon.
func (e *Election) acceptsOfferLocked() bool {
	if !e.mayCampaignLocked() || e.withoutRoomLocked() != nil {
		return false
	}
	switch e.State() {
	case Stopped:
		return e.isPolledLocked()
	case Leading:
		return true
	case Follower, Acquiring, Reconnecting:
		// Invariant 4: running work of the last term keeps the role from the node.
		return e.term == nil && e.attempt.notBefore <= e.node.clock.Now().Mono
	default:
		return false
	}
}

// isPolledLocked reports whether the user of the election calls TryAcquire again and
// again, as often as a reservation lasts at least.
func (e *Election) isPolledLocked() bool {
	return e.node.clock.Now().Mono < e.polledUntil
}

// OnOffer registers accept to decide about offers of roles without a started election.
// accept reports whether the node begins to campaign for the role as soon as the role is
// reserved for it. Without accept the node declines such offers. stop removes accept. The
// goroutine of the session calls accept; it must not block.
func (n *Node) OnOffer(accept func(role string) bool) (stop func()) {
	key := &accept
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.offerDeciders == nil {
		n.offerDeciders = map[*func(role string) bool]struct{}{}
	}
	n.offerDeciders[key] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.offerDeciders, key)
	}
}
