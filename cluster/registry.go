package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
)

// Registry reads the nodes of a cluster from the database. Callers need not be members.
// Each call is one query without a node's session; [Member.Nodes] does not query the
// database.
//
// A member changes its own row: [Join] registers the node, [Member.SetStatus]
// updates its status, [Member.Close] deregisters it. If something else removes
// the row, the node registers again.
//
// A node silent for longer than its lease is dead, even if no node has marked it. Errors
// come from the Store. A Registry is safe for concurrent use.
type Registry struct {
	store Store
	name  string
}

// NewRegistry returns the registry of a store, for a cluster with the default
// name.
func NewRegistry(store Store) *Registry { return &Registry{store: store, name: defaultName} }

// WithClusterName returns the same registry with another cluster name, for
// [Registry.Info].
func (r *Registry) WithClusterName(cluster string) *Registry {
	return &Registry{store: r.store, name: cluster}
}

// Registry returns the registry of this member.
func (m *Member) Registry() *Registry { return NewRegistry(m.store).WithClusterName(m.config.Name) }

// Nodes returns all nodes, including dead ones, oldest session first.
func (r *Registry) Nodes(ctx context.Context) ([]NodeInfo, error) {
	members, err := r.store.Members(ctx)
	return newNodeInfos(members), err
}

// ActiveNodes returns the nodes accepting work.
func (r *Registry) ActiveNodes(ctx context.Context) ([]NodeInfo, error) {
	return r.NodesByStatus(ctx, Active)
}

// NodesByStatus returns the nodes with one status.
func (r *Registry) NodesByStatus(ctx context.Context, status NodeStatus) ([]NodeInfo, error) {
	nodes, err := r.Nodes(ctx)
	return slices.DeleteFunc(nodes, func(n NodeInfo) bool { return n.Status != status }), err
}

// Node returns one node. If there is no node with this id, the error matches
// tenure.ErrUnknownNode and names the nodes with the most similar ids.
func (r *Registry) Node(ctx context.Context, id NodeID) (NodeInfo, error) {
	nodes, err := r.Nodes(ctx)
	if err != nil {
		return NodeInfo{}, err
	}
	for _, node := range nodes {
		if node.ID == id {
			return node, nil
		}
	}
	return NodeInfo{}, unknownNode(id, nodes)
}

// NodeCounts is the number of nodes by status.
type NodeCounts struct {
	Active, Draining, Dead, Joining int
	Total                           int
}

// Counts counts the nodes by status.
func (r *Registry) Counts(ctx context.Context) (NodeCounts, error) {
	nodes, err := r.Nodes(ctx)
	return CountNodes(nodes), err
}

// CountNodes counts nodes by status.
func CountNodes(nodes []NodeInfo) NodeCounts {
	counts := NodeCounts{Total: len(nodes)}
	for _, node := range nodes {
		switch node.Status {
		case Active:
			counts.Active++
		case Draining:
			counts.Draining++
		case Joining:
			counts.Joining++
		default:
			counts.Dead++
		}
	}
	return counts
}

// MarkDead marks nodes dead after a silence longer than the threshold and their own lease,
// and returns their ids. Members do this on their own; see [HeartbeatConfig].
func (r *Registry) MarkDead(ctx context.Context, threshold time.Duration) ([]NodeID, error) {
	if threshold < 0 {
		return nil, fmt.Errorf("%w: the dead threshold is %v; it must be at least 0", tenure.ErrInvalidConfig, threshold)
	}
	return r.store.MarkDead(ctx, threshold)
}

// ForgetDead removes dead nodes with a last heartbeat older than olderThan, and returns
// their ids. Joining nodes do this on their own for nodes dead for a day.
func (r *Registry) ForgetDead(ctx context.Context, olderThan time.Duration) ([]NodeID, error) {
	if olderThan < 0 {
		return nil, fmt.Errorf("%w: the minimum age of dead nodes is %v; it must be at least 0", tenure.ErrInvalidConfig, olderThan)
	}
	return r.store.ForgetDead(ctx, olderThan)
}

// Forget removes one dead node. The error matches tenure.ErrUnknownNode if
// there is no dead node with this id.
func (r *Registry) Forget(ctx context.Context, id NodeID) error {
	err := r.store.Forget(ctx, id)
	if !errors.Is(err, tenure.ErrUnknownNode) {
		return err
	}
	node, lookup := r.Node(ctx, id)
	if lookup != nil {
		return lookup
	}
	return fmt.Errorf("%w: %s (%s) is %s: only a dead node can be forgotten", tenure.ErrUnknownNode, id, node.Name, node.Status)
}

// ClusterInfo summarizes a cluster.
type ClusterInfo struct {
	Name            string
	TotalNodes      int
	ActiveNodes     int
	DrainingNodes   int
	DeadNodes       int
	SchedulerLeader *NodeID // leader of [SchedulerRole], or nil
}

// Info returns a summary of the cluster.
func (r *Registry) Info(ctx context.Context) (ClusterInfo, error) {
	counts, err := r.Counts(ctx)
	if err != nil {
		return ClusterInfo{}, err
	}
	info := ClusterInfo{
		Name: r.name, TotalNodes: counts.Total, ActiveNodes: counts.Active,
		DrainingNodes: counts.Draining, DeadNodes: counts.Dead,
	}
	leaders, err := r.store.Leaders(ctx, SchedulerRole.Name())
	if err != nil {
		return ClusterInfo{}, err
	}
	if len(leaders) > 0 {
		info.SchedulerLeader = &leaders[0].NodeID
	}
	return info, nil
}

// suggestions is how many similar nodes an error names.
const suggestions = 3

// unknownNode returns the error for an id without a node. It names the nodes with the most
// similar ids; of equals, the latest.
func unknownNode(id NodeID, nodes []NodeInfo) error {
	if len(nodes) == 0 {
		return fmt.Errorf("%w: %s: the registry is empty", tenure.ErrUnknownNode, id)
	}
	byLikeness := slices.Clone(nodes)
	slices.Reverse(byLikeness)
	slices.SortStableFunc(byLikeness, func(a, b NodeInfo) int { return cmp.Compare(similarity(b.ID, id), similarity(a.ID, id)) })
	var proposals []string
	for _, node := range byLikeness[:min(len(byLikeness), suggestions)] {
		proposals = append(proposals, fmt.Sprintf("%s (%s, %s)", node.ID, node.Name, node.Status))
	}
	return fmt.Errorf("%w: %s; the most similar of %d: %s", tenure.ErrUnknownNode, id, len(nodes), strings.Join(proposals, ", "))
}

// similarity returns how many characters two ids have in common at the same
// positions.
func similarity(a, b NodeID) int {
	same, other := 0, b.String()
	for i, c := range []byte(a.String()) {
		if other[i] == c {
			same++
		}
	}
	return same
}
