package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// successors returns a function to choose the next leader of each released role, or nil if
// the standbys compete. A requested target takes precedence over the configured one. The
// function must not be called concurrently. Without a recent read of the registry, it uses
// the members and loads of the last read.
func (m *Member) successors(ctx context.Context, target uuid.UUID) func(role string) uuid.UUID {
	config := m.policy.Load()
	if target == uuid.Nil && config.HandOverTo == uuid.Nil && !config.HandOver {
		return nil
	}
	interval := m.node.Timing().CheckInterval
	ctx, cancel := context.WithTimeout(ctx, min(interval, time.Second))
	defer cancel()
	members, err := m.view.notOlder(ctx, interval)
	if err != nil {
		m.node.Logger().Warn("reading the registry for the choice of successors failed", "error", err)
	}
	nodes := activeByLoad(members, m.node.ID())
	for _, wanted := range []uuid.UUID{target, config.HandOverTo} {
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
	return m.preferredSuccessor(nodes)
}

// preferredSuccessor returns a function to choose one of the most preferred nodes for each
// role: the node chosen least often and, of equals, the least loaded. nodes are ordered by
// load.
func (m *Member) preferredSuccessor(nodes []tenure.Member) func(role string) uuid.UUID {
	elections := map[string]*tenure.Election{}
	for _, e := range m.node.Elections() {
		elections[e.Role().Name()] = e
	}
	chosen := map[uuid.UUID]int{}
	return func(role string) uuid.UUID {
		best := nodes
		if e := elections[role]; e != nil {
			best = e.PreferredMembers(nodes)
		}
		if len(best) == 0 {
			return uuid.Nil // no node may lead the role
		}
		next := slices.MinFunc(best, func(a, b tenure.Member) int { return cmp.Compare(chosen[a.ID], chosen[b.ID]) })
		chosen[next.ID]++
		return next.ID
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
