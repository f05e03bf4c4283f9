package tenure

import (
	"fmt"
	"slices"

	"github.com/exactly-one/tenure/internal/endreason"
)

// mayCampaignLocked reports whether the node may campaign for roles.
func (n *Node) mayCampaignLocked() bool {
	return n.description.Status == StatusActive && !n.cfg.NoLeader
}

// missing returns the name of a node role or label that the role requires and a node
// does not have. Both are empty if the node has all of them.
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

// meetsRequirementsLocked reports whether the node has everything that the role
// requires.
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

// applyRequirementsLocked steps down from the roles for which the node no longer
// meets the requirements, and restarts the wait for the roles to take over for which
// it does not campaign.
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

// campaigns reports whether the node would try the role when it becomes reserved for the
// node, or leads it already.
func (n *Node) campaigns(role string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.elections[role]
	if e == nil || e.stopping || !e.mayCampaignLocked() {
		return false
	}
	switch e.State() {
	case Leading:
		return true
	case Follower, Acquiring, Reconnecting:
		// Invariant 4: work of the last term that still runs keeps the role from the node.
		return e.term == nil && e.attempt.notBefore <= n.clock.Now().Mono
	default:
		return false
	}
}
