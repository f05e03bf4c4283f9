package dashboard

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// replacedNodes returns the replaced dead nodes: a live node with the same name started
// after the last heartbeat of the dead one. A live node replaces one dead node and that
// node's own predecessors.
func replacedNodes(members []tenure.Member) map[uuid.UUID]bool {
	dead, live := map[string][]tenure.Member{}, map[string][]tenure.Member{}
	for _, m := range members {
		if m.Status == tenure.StatusDead {
			dead[m.Name] = append(dead[m.Name], m)
		} else {
			live[m.Name] = append(live[m.Name], m)
		}
	}
	replaced := map[uuid.UUID]bool{}
	for name, gone := range dead {
		// Nodes with a time in common do not replace one another. So as many nodes are
		// missing as ran together, less the ones started later.
		slices.SortFunc(gone, func(a, b tenure.Member) int { return b.LastHeartbeat.Compare(a.LastHeartbeat) })
		heirs := slices.Clone(live[name])
		slices.SortFunc(heirs, func(a, b tenure.Member) int { return b.StartedAt.Compare(a.StartedAt) })
		for _, m := range gone {
			heir := slices.IndexFunc(heirs, func(h tenure.Member) bool { return !h.StartedAt.Before(m.LastHeartbeat) })
			if heir < 0 {
				continue
			}
			replaced[m.ID] = true
			heirs[heir] = m // the node that m replaced is replaced too
		}
	}
	return replaced
}

// shownMembers returns the nodes without replaced ones, dead and silent ones first. Under
// the mutex.
func (p *snapshot) shownMembers() []tenure.Member {
	shown := slices.DeleteFunc(slices.Clone(p.members), func(m tenure.Member) bool { return p.replaced[m.ID] })
	slices.SortStableFunc(shown, func(a, b tenure.Member) int { return cmp.Compare(p.urgency(a), p.urgency(b)) })
	return shown
}

// urgency orders nodes by their urgency for an operator.
func (p *snapshot) urgency(m tenure.Member) int {
	return slices.Index([]string{dead, silent, string(tenure.StatusDraining), string(tenure.StatusJoining), string(tenure.StatusActive)}, p.nodeState(m))
}
