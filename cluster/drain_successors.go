package cluster

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// successors returns a function that chooses the next leader of each role that
// the node releases, or nil to let the standbys compete. A requested target
// takes precedence over the configured one. The function must not be called
// concurrently.
func (m *Member) successors(target uuid.UUID) func(role string) uuid.UUID {
	config := m.policy.Load()
	members, _ := m.view.members()
	nodes := activeByLoad(members, m.node.ID())
	for _, wanted := range []uuid.UUID{target, config.HandOverTo.UUID()} {
		if slices.ContainsFunc(nodes, func(node tenure.Member) bool { return node.ID == wanted }) {
			return func(string) uuid.UUID { return wanted }
		}
		if wanted != uuid.Nil {
			m.node.Logger().Warn("the node that should take over the roles is not active", "node", wanted)
		}
	}
	nodes = slices.DeleteFunc(nodes, func(node tenure.Member) bool {
		return !slices.Contains(node.Roles, string(Scheduler))
	})
	if !config.HandOver || len(nodes) == 0 {
		return nil
	}
	assigned := 0
	return func(string) uuid.UUID {
		node := nodes[assigned%len(nodes)]
		assigned++
		return node.ID
	}
}

// activeByLoad returns the active members except one, the least loaded first.
func activeByLoad(members []tenure.Member, without uuid.UUID) []tenure.Member {
	nodes := slices.DeleteFunc(slices.Clone(members), func(m tenure.Member) bool {
		return m.ID == without || !m.Status.AcceptsWork()
	})
	slices.SortStableFunc(nodes, func(a, b tenure.Member) int { return cmp.Compare(a.Load.Mean(), b.Load.Mean()) })
	return nodes
}
