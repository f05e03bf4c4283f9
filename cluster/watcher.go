package cluster

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"
)

// watcher compares the reported nodes with the nodes in the view.
type watcher struct {
	view     *view
	filter   Filter
	reported nodeList                 // in the order of compareNodes
	readAt   map[NodeID]time.Duration // when the reported state of each was read; nil before the snapshot
}

func newWatcher(v *view, filter Filter) *watcher { return &watcher{view: v, filter: filter} }

// run sends changes until ctx ends, and closes the channel.
func (w *watcher) run(ctx context.Context, changes chan<- Change) {
	defer close(changes)
	for {
		read, readAt, wakeups := w.view.snapshot()
		next := w.next(read, readAt)
		out := changes
		if next.Kind == "" {
			out = nil
		}
		select {
		case out <- next:
			w.note(next.Kind, next.Node, read, readAt)
		case <-wakeups: // compare again what the receiver has not taken
		case <-ctx.Done():
			return
		}
	}
}

// next returns the next change to report: first a snapshot, then one step toward the nodes
// of the last read. It is empty if there is none.
func (w *watcher) next(read *nodeList, readAt time.Duration) Change {
	switch {
	case read == nil:
		return Change{}
	case w.readAt == nil:
		return Change{Kind: Snapshot, Nodes: w.selected(read)}
	}
	kind, node := w.step(read, readAt)
	if kind == "" {
		return Change{}
	}
	nodes := append(make([]NodeInfo, 0, len(w.reported.nodes)+1), w.reported.nodes...)
	return Change{Kind: kind, Node: node, Nodes: withChange(nodes, kind, node)}
}

// note records a change as reported.
func (w *watcher) note(kind ChangeKind, node NodeInfo, read *nodeList, readAt time.Duration) {
	switch kind {
	case Snapshot:
		w.reported.nodes, w.readAt = w.selected(read), map[NodeID]time.Duration{}
		for i := range w.reported.nodes {
			w.readAt[w.reported.nodes[i].ID] = readAt
		}
	case Left:
		w.reported.nodes = withChange(w.reported.nodes, kind, node)
		delete(w.readAt, node.ID)
	default:
		w.reported.nodes = withChange(w.reported.nodes, kind, node)
		w.readAt[node.ID] = readAt
	}
	w.reported.index()
}

// selected returns the nodes selected by the filter.
func (w *watcher) selected(read *nodeList) []NodeInfo {
	nodes := make([]NodeInfo, 0, len(read.nodes))
	for _, node := range read.nodes {
		if w.filter.Matches(node) {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, compareNodes)
	return nodes
}

// withChange applies one change to nodes.
func withChange(nodes []NodeInfo, kind ChangeKind, node NodeInfo) []NodeInfo {
	for i := range nodes {
		if nodes[i].ID == node.ID {
			nodes = slices.Delete(nodes, i, i+1)
			break
		}
	}
	if kind == Left {
		return nodes
	}
	i, _ := slices.BinarySearchFunc(nodes, node, compareNodes)
	return slices.Insert(nodes, i, node)
}

// step returns one step toward the nodes of the last read: first the nodes that left, then
// the others in order.
func (w *watcher) step(read *nodeList, readAt time.Duration) (ChangeKind, NodeInfo) {
	for i := range w.reported.nodes {
		is := &w.reported.nodes[i]
		at, found := read.at[is.ID]
		if found {
			is = &read.nodes[at]
		}
		if !found || !w.filter.Matches(*is) {
			return Left, *is
		}
	}
	for i := range read.nodes {
		node := &read.nodes[i]
		if !w.filter.Matches(*node) {
			continue
		}
		at, found := w.reported.at[node.ID]
		if !found {
			return Joined, *node
		}
		was := &w.reported.nodes[at]
		if !sameDescription(was, node) || w.filter.Load && !sameLoad(was, node) && readAt-w.readAt[node.ID] >= w.view.interval {
			return Updated, *node
		}
	}
	return "", NodeInfo{}
}

// compareNodes orders nodes by their start, regardless of later sessions.
func compareNodes(a, b NodeInfo) int {
	if order := a.StartedAt.Compare(b.StartedAt); order != 0 {
		return order
	}
	return bytes.Compare(a.ID[:], b.ID[:])
}

// sameDescription reports whether two states of a node differ at most in the
// load.
func sameDescription(a, b *NodeInfo) bool {
	return a.Name == b.Name && a.Hostname == b.Hostname && a.Address == b.Address && a.HTTPPort == b.HTTPPort &&
		a.GRPCPort == b.GRPCPort && a.Version == b.Version && a.Status == b.Status && a.StatusBy == b.StatusBy && a.Drained == b.Drained &&
		slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Capabilities, b.Capabilities) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Spreads, b.Spreads)
}

func sameLoad(a, b *NodeInfo) bool {
	return a.CurrentConnections == b.CurrentConnections && a.CurrentJobs == b.CurrentJobs && a.InFlight == b.InFlight &&
		a.CPUUsage == b.CPUUsage && a.MemoryUsage == b.MemoryUsage
}
