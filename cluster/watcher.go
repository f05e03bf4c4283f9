package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// watcher compares what it has told with what the view has seen.
type watcher struct {
	view   *view
	filter Filter
	told   []telling // in the order of compareNodes
}

// telling is a node as it was told.
type telling struct {
	NodeInfo
	readAt time.Duration // of the reading that told of it
}

func newWatcher(v *view, filter Filter) *watcher { return &watcher{view: v, filter: filter} }

// run tells changes until the context ends, and closes the channel.
func (w *watcher) run(ctx context.Context, changes chan<- Change) {
	defer close(changes)
	for begun := false; ; {
		nodes, readAt, read, news := w.view.snapshot()
		var next step
		switch {
		case !read:
		case !begun:
			next = w.first(nodes, readAt)
		default:
			next = w.next(nodes, readAt)
		}
		out := changes
		if next.Kind == "" {
			out = nil
		}
		select {
		case out <- next.Change:
			begun, w.told = true, next.told
		case <-news: // what the receiver has not taken is compared anew
		case <-ctx.Done():
			return
		}
	}
}

// step is a change, and what will have been told with it. That of no kind is
// none.
type step struct {
	Change
	told []telling
}

func newStep(kind ChangeKind, node NodeInfo, told []telling) step {
	slices.SortFunc(told, func(a, b telling) int { return compareNodes(a.NodeInfo, b.NodeInfo) })
	nodes := make([]NodeInfo, len(told))
	for i, t := range told {
		nodes[i] = t.NodeInfo
	}
	return step{Change{Kind: kind, Node: node, Nodes: nodes}, told}
}

// first is the step to a snapshot.
func (w *watcher) first(nodes []NodeInfo, readAt time.Duration) step {
	var told []telling
	for _, node := range nodes {
		if w.filter.Matches(node) {
			told = append(told, telling{node, readAt})
		}
	}
	return newStep(Snapshot, NodeInfo{}, told)
}

// next is one step toward the nodes that were read: those that left come
// first, then the others in their order.
func (w *watcher) next(nodes []NodeInfo, readAt time.Duration) step {
	read := make(map[NodeID]int, len(nodes))
	for i := range nodes {
		read[nodes[i].ID] = i
	}
	told := make(map[NodeID]int, len(w.told))
	for i := range w.told {
		was := &w.told[i]
		told[was.ID] = i
		is := was.NodeInfo
		at, found := read[was.ID]
		if found {
			is = nodes[at]
		}
		if !found || !w.filter.Matches(is) {
			return newStep(Left, is, slices.Delete(slices.Clone(w.told), i, i+1))
		}
	}
	for _, node := range nodes {
		if !w.filter.Matches(node) {
			continue
		}
		i, found := told[node.ID]
		if !found {
			return newStep(Joined, node, append(slices.Clone(w.told), telling{node, readAt}))
		}
		was := w.told[i]
		if !saysSame(was.NodeInfo, node) || !sameLoad(was.NodeInfo, node) && readAt-was.readAt >= w.view.interval {
			told := slices.Clone(w.told)
			told[i] = telling{node, readAt}
			return newStep(Updated, node, told)
		}
	}
	return step{}
}

// compareNodes orders nodes as they came, whatever sessions they had since.
func compareNodes(a, b NodeInfo) int {
	return cmp.Or(a.StartedAt.Compare(b.StartedAt), strings.Compare(a.ID.String(), b.ID.String()))
}

// saysSame reports whether a node tells the same of itself as it did, but for
// the figures of its heartbeats.
func saysSame(a, b NodeInfo) bool {
	return a.Name == b.Name && a.Hostname == b.Hostname && a.Address == b.Address && a.HTTPPort == b.HTTPPort &&
		a.GRPCPort == b.GRPCPort && a.Version == b.Version && a.Status == b.Status && a.StatusBy == b.StatusBy && a.Drained == b.Drained &&
		slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Capabilities, b.Capabilities) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Spreads, b.Spreads)
}

func sameLoad(a, b NodeInfo) bool {
	return a.CurrentConnections == b.CurrentConnections && a.CurrentJobs == b.CurrentJobs && a.InFlight == b.InFlight &&
		a.CPUUsage == b.CPUUsage && a.MemoryUsage == b.MemoryUsage
}
