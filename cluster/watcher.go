package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// watcher compares the nodes that it has reported with those in the view.
type watcher struct {
	view     *view
	filter   Filter
	reported []reportedNode // in the order of compareNodes
}

// reportedNode is a node as it was reported.
type reportedNode struct {
	NodeInfo
	readAt time.Duration // when the reported state was read
}

func newWatcher(v *view, filter Filter) *watcher { return &watcher{view: v, filter: filter} }

// run sends changes until ctx ends, and closes the channel.
func (w *watcher) run(ctx context.Context, changes chan<- Change) {
	defer close(changes)
	for begun := false; ; {
		nodes, readAt, read, wakeups := w.view.snapshot()
		var next step
		switch {
		case !read:
		case !begun:
			next = w.firstStep(nodes, readAt)
		default:
			next = w.nextStep(nodes, readAt)
		}
		out := changes
		if next.Kind == "" {
			out = nil
		}
		select {
		case out <- next.Change:
			begun, w.reported = true, next.reported
		case <-wakeups: // compare again what the receiver has not taken
		case <-ctx.Done():
			return
		}
	}
}

// step is a change and the nodes that will have been reported with it. It is
// empty if its kind is.
type step struct {
	Change
	reported []reportedNode
}

func newStep(kind ChangeKind, node NodeInfo, told []reportedNode) step {
	slices.SortFunc(told, func(a, b reportedNode) int { return compareNodes(a.NodeInfo, b.NodeInfo) })
	nodes := make([]NodeInfo, len(told))
	for i, t := range told {
		nodes[i] = t.NodeInfo
	}
	return step{Change{Kind: kind, Node: node, Nodes: nodes}, told}
}

// firstStep returns the step to a snapshot.
func (w *watcher) firstStep(nodes []NodeInfo, readAt time.Duration) step {
	var told []reportedNode
	for _, node := range nodes {
		if w.filter.Matches(node) {
			told = append(told, reportedNode{node, readAt})
		}
	}
	return newStep(Snapshot, NodeInfo{}, told)
}

// nextStep returns one step toward the nodes that were read: first those that left,
// then the others in order.
func (w *watcher) nextStep(nodes []NodeInfo, readAt time.Duration) step {
	read := make(map[NodeID]int, len(nodes))
	for i := range nodes {
		read[nodes[i].ID] = i
	}
	told := make(map[NodeID]int, len(w.reported))
	for i := range w.reported {
		was := &w.reported[i]
		told[was.ID] = i
		is := was.NodeInfo
		at, found := read[was.ID]
		if found {
			is = nodes[at]
		}
		if !found || !w.filter.Matches(is) {
			return newStep(Left, is, slices.Delete(slices.Clone(w.reported), i, i+1))
		}
	}
	for _, node := range nodes {
		if !w.filter.Matches(node) {
			continue
		}
		i, found := told[node.ID]
		if !found {
			return newStep(Joined, node, append(slices.Clone(w.reported), reportedNode{node, readAt}))
		}
		was := w.reported[i]
		if !sameDescription(was.NodeInfo, node) || w.filter.Load && !sameLoad(was.NodeInfo, node) && readAt-was.readAt >= w.view.interval {
			told := slices.Clone(w.reported)
			told[i] = reportedNode{node, readAt}
			return newStep(Updated, node, told)
		}
	}
	return step{}
}

// compareNodes orders nodes by their start, regardless of later sessions.
func compareNodes(a, b NodeInfo) int {
	return cmp.Or(a.StartedAt.Compare(b.StartedAt), strings.Compare(a.ID.String(), b.ID.String()))
}

// sameDescription reports whether two states of a node differ at most in the
// load.
func sameDescription(a, b NodeInfo) bool {
	return a.Name == b.Name && a.Hostname == b.Hostname && a.Address == b.Address && a.HTTPPort == b.HTTPPort &&
		a.GRPCPort == b.GRPCPort && a.Version == b.Version && a.Status == b.Status && a.StatusBy == b.StatusBy && a.Drained == b.Drained &&
		slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Capabilities, b.Capabilities) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Spreads, b.Spreads)
}

func sameLoad(a, b NodeInfo) bool {
	return a.CurrentConnections == b.CurrentConnections && a.CurrentJobs == b.CurrentJobs && a.InFlight == b.InFlight &&
		a.CPUUsage == b.CPUUsage && a.MemoryUsage == b.MemoryUsage
}
