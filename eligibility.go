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

// missingLocked returns the name of a node role or label that the role requires and
// the node does not have. Both are empty if the node has all of them.
func (e *Election) missingLocked() (nodeRole, label string) {
	has := e.node.description
	if required := e.cfg.RequiresNodeRole; required != "" && !slices.Contains(has.Roles, required) {
		return required, ""
	}
	for name, value := range e.cfg.Requires {
		if had, ok := has.Labels[name]; !ok || had != value {
			return "", name
		}
	}
	return "", ""
}

// meetsRequirementsLocked reports whether the node has everything that the role
// requires.
func (e *Election) meetsRequirementsLocked() bool {
	nodeRole, label := e.missingLocked()
	return nodeRole == "" && label == ""
}

// mayCampaignLocked reports whether the node may campaign for the role.
func (e *Election) mayCampaignLocked() bool {
	return e.meetsRequirementsLocked() && e.node.mayCampaignLocked()
}

// ineligibleLocked returns why the node may not campaign for the role, or nil.
func (e *Election) ineligibleLocked() error {
	nodeRole, label := e.missingLocked()
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
// meets the requirements.
func (n *Node) applyRequirementsLocked() {
	for _, e := range n.elections {
		if e.State() == Leading && !e.meetsRequirementsLocked() {
			reason := e.ineligibleLocked()
			n.log.Warn("stepping down", "role", e.role.Name(), "reason", reason)
			e.beginStepDownLocked(termEnd{reason: endreason.Resigned, cause: withDetail(ErrSteppedDown, reason)})
		}
	}
}
