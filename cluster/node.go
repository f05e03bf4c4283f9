package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// NodeID identifies a node: a random UUID, new at every start. uuid.Nil identifies no
// node.
type NodeID = uuid.UUID

// NewNodeID returns a new random id.
func NewNodeID() NodeID { return uuid.New() }

// ParseNodeID parses a UUID.
func ParseNodeID(text string) (NodeID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%q is not a node id: it must be a UUID: %w", text, err)
	}
	return id, nil
}

// NodeStatus is the status of a node. Only an active node accepts work.
type NodeStatus = tenure.NodeStatus

// The statuses of nodes.
const (
	Joining  = tenure.StatusJoining
	Active   = tenure.StatusActive
	Draining = tenure.StatusDraining
	Dead     = tenure.StatusDead
)

// NodeRole is the purpose of a node: one of the constants below, or any other name. It
// does not affect the leader of a role, unless the election has RequiresNodeRole.
type NodeRole string

// The predefined node roles.
const (
	Gateway   NodeRole = "gateway"   // handles requests of clients
	Function  NodeRole = "function"  // executes functions
	Worker    NodeRole = "worker"    // processes background jobs
	Scheduler NodeRole = "scheduler" // campaigns for roles
)

// Observer is the node role of a mere observer, such as tenure serve. It does not count
// toward Config.MinNodes. A node with NoLeader has it.
const Observer NodeRole = "observer"

// NodeRoles returns the four predefined node roles of working nodes, the default of a
// node.
func NodeRoles() []NodeRole { return []NodeRole{Gateway, Function, Worker, Scheduler} }

// NodeInfo describes a node of the cluster.
type NodeInfo struct {
	ID           NodeID
	Name         string
	Hostname     string
	Address      string // where other nodes reach it; empty if unknown
	HTTPPort     int    // 0 for none
	GRPCPort     int    // 0 for none
	Roles        []NodeRole
	Capabilities []string
	Labels       map[string]string
	Version      string
	Spreads      map[string]float64 // its weight in each spread that it runs

	Status        NodeStatus
	StatusBy      string // requester of the status, if any
	Drained       bool   // draining with nothing left to do
	StartedAt     time.Time
	LastHeartbeat time.Time

	CurrentConnections int
	CurrentJobs        int
	InFlight           int     // units of work that a drain waits for
	CPUUsage           float64 // percent
	MemoryUsage        float64 // percent
}

// HasRole reports whether the node has a node role.
func (n NodeInfo) HasRole(role NodeRole) bool { return slices.Contains(n.Roles, role) }

// HasCapability reports whether the node has a capability.
func (n NodeInfo) HasCapability(capability string) bool {
	return slices.Contains(n.Capabilities, capability)
}

// Load returns the node's load from 0 to 1: the mean of CPU and memory usage.
func (n NodeInfo) Load() float64 {
	return tenure.Load{CPU: n.CPUUsage, Memory: n.MemoryUsage}.Mean()
}

// nodeList is nodes, and where each of them is in the list.
type nodeList struct {
	nodes []NodeInfo
	at    map[NodeID]int
}

func (l *nodeList) index() {
	clear(l.at)
	if l.at == nil {
		l.at = make(map[NodeID]int, len(l.nodes))
	}
	for i := range l.nodes {
		l.at[l.nodes[i].ID] = i
	}
}

// next returns members as a list. Unchanged parts are shared with this list.
func (l *nodeList) next(members []tenure.Member) *nodeList {
	list := &nodeList{nodes: make([]NodeInfo, len(members))}
	for i := range members {
		before, found := l.at[members[i].ID]
		if found {
			list.nodes[i] = newNodeInfo(&members[i], &l.nodes[before])
		} else {
			list.nodes[i] = newNodeInfo(&members[i], nil)
		}
	}
	list.index()
	return list
}

func newNodeInfos(members []tenure.Member) []NodeInfo {
	nodes := make([]NodeInfo, len(members))
	for i := range members {
		nodes[i] = newNodeInfo(&members[i], nil)
	}
	return nodes
}

// newNodeInfo describes a member. Equal lists and maps are shared with before.
func newNodeInfo(m *tenure.Member, before *NodeInfo) NodeInfo {
	info := NodeInfo{
		ID: m.ID, Name: m.Name, Hostname: m.Host, Address: m.Address, HTTPPort: m.HTTPPort, GRPCPort: m.GRPCPort, Version: m.Version,
		Status: m.Status, StatusBy: m.StatusBy, Drained: m.Drained, StartedAt: m.StartedAt, LastHeartbeat: m.LastHeartbeat,
		CurrentConnections: m.Connections, CurrentJobs: m.Jobs, InFlight: m.InFlight, CPUUsage: m.CPU, MemoryUsage: m.Memory,
	}
	if unmarked(m) {
		info.Status, info.StatusBy = Dead, ""
	}
	if before != nil && sameSets(m, before) {
		info.Roles, info.Capabilities, info.Labels, info.Spreads = before.Roles, before.Capabilities, before.Labels, before.Spreads
		return info
	}
	for _, role := range m.Roles {
		info.Roles = append(info.Roles, NodeRole(role))
	}
	info.Capabilities, info.Labels, info.Spreads = slices.Clone(m.Capabilities), maps.Clone(m.Labels), maps.Clone(m.Spreads)
	return info
}

// sameSets reports whether a member and a node have equal lists and maps.
func sameSets(m *tenure.Member, n *NodeInfo) bool {
	return slices.EqualFunc(m.Roles, n.Roles, func(role string, of NodeRole) bool { return NodeRole(role) == of }) &&
		slices.Equal(m.Capabilities, n.Capabilities) && maps.Equal(m.Labels, n.Labels) && maps.Equal(m.Spreads, n.Spreads)
}
