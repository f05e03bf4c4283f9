package dashboard

import (
	"cmp"
	"slices"

	"github.com/exactly-one/tenure"
)

// shownMembers returns the nodes without those that came back, dead and silent ones first. Under
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
