package cluster

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// successors returns who is to lead next for each role that the node gives up,
// or nil to leave that to the others. It is for one goroutine. A target that
// somebody named goes before the configured one.
func (m *Member) successors(target uuid.UUID) func(role string) uuid.UUID {
	config := m.policy.Load()
	members, _ := m.view.members()
	heirs := heirs(members, m.node.ID())
	for _, wanted := range []uuid.UUID{target, config.HandOverTo.UUID()} {
		if slices.ContainsFunc(heirs, func(heir tenure.Member) bool { return heir.ID == wanted }) {
			return func(string) uuid.UUID { return wanted }
		}
		if wanted != uuid.Nil {
			m.node.Logger().Warn("the node that is to take the roles over is not in service", "node", wanted)
		}
	}
	heirs = slices.DeleteFunc(heirs, func(heir tenure.Member) bool {
		return !slices.Contains(heir.Roles, string(Scheduler))
	})
	if !config.HandOver || len(heirs) == 0 {
		return nil
	}
	given := 0
	return func(string) uuid.UUID {
		heir := heirs[given%len(heirs)]
		given++
		return heir.ID
	}
}

// heirs returns the members in service but one, the least loaded first.
func heirs(members []tenure.Member, without uuid.UUID) []tenure.Member {
	heirs := slices.DeleteFunc(slices.Clone(members), func(m tenure.Member) bool {
		return m.ID == without || !m.Status.AcceptsWork()
	})
	slices.SortStableFunc(heirs, func(a, b tenure.Member) int { return cmp.Compare(a.Load.Mean(), b.Load.Mean()) })
	return heirs
}
