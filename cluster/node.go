package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// NodeID identifies a node: a random UUID, new with every start. Its zero value
// is no node.
type NodeID uuid.UUID

// NewNodeID returns a new random id.
func NewNodeID() NodeID { return NodeID(uuid.New()) }

// ParseNodeID reads an id from the text of a UUID.
func ParseNodeID(text string) (NodeID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return NodeID{}, fmt.Errorf("%q is no node's id, which is a UUID: %w", text, err)
	}
	return NodeID(id), nil
}

// UUID returns the id as a UUID; NodeID(id) is the way back.
func (id NodeID) UUID() uuid.UUID { return uuid.UUID(id) }

// IsZero reports whether the id is that of no node.
func (id NodeID) IsZero() bool { return id == NodeID{} }

// String returns the id as the text of a UUID.
func (id NodeID) String() string { return uuid.UUID(id).String() }

// MarshalText implements [encoding.TextMarshaler].
func (id NodeID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *NodeID) UnmarshalText(text []byte) error {
	parsed, err := ParseNodeID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// NodeStatus is where a node is in its life; only an active one accepts work.
type NodeStatus = tenure.NodeStatus

// The statuses of nodes.
const (
	Joining  = tenure.StatusJoining
	Active   = tenure.StatusActive
	Draining = tenure.StatusDraining
	Dead     = tenure.StatusDead
)

// NodeRole is what a node is there for: one of those below, or any other name.
// It says what a node can do, and has nothing to do with who leads.
type NodeRole string

// The roles of nodes.
const (
	Gateway   NodeRole = "gateway"   // takes the requests of clients
	Function  NodeRole = "function"  // executes functions
	Worker    NodeRole = "worker"    // works off jobs in the background
	Scheduler NodeRole = "scheduler" // stands for the roles of leaders
)

// NodeRoles returns the four roles above, which a node has by default.
func NodeRoles() []NodeRole { return []NodeRole{Gateway, Function, Worker, Scheduler} }

// NodeInfo is what the cluster knows of a node.
type NodeInfo struct {
	ID           NodeID
	Name         string
	Hostname     string
	Address      string // where other nodes reach it; empty if it did not say
	HTTPPort     int    // 0 for none
	GRPCPort     int    // 0 for none
	Roles        []NodeRole
	Capabilities []string
	Labels       map[string]string
	Version      string
	Spreads      map[string]float64 // its weight in the sets of roles that it shares

	Status        NodeStatus
	StatusBy      string // who asked for the status, if somebody did
	Drained       bool   // draining, with nothing left to do
	StartedAt     time.Time
	LastHeartbeat time.Time

	CurrentConnections int
	CurrentJobs        int
	InFlight           int     // pieces of work that a drain waits for
	CPUUsage           float64 // percent
	MemoryUsage        float64 // percent
}

// HasRole reports whether the node has a role.
func (n NodeInfo) HasRole(role NodeRole) bool { return slices.Contains(n.Roles, role) }

// HasCapability reports whether the node has a capability.
func (n NodeInfo) HasCapability(capability string) bool {
	return slices.Contains(n.Capabilities, capability)
}

// Load is how busy the node is, from 0 to 1: the mean of CPU and memory.
func (n NodeInfo) Load() float64 {
	return tenure.Load{CPU: n.CPUUsage, Memory: n.MemoryUsage}.Mean()
}

func newNodeInfo(m tenure.Member) NodeInfo {
	if unmarked(m) {
		m.Status, m.StatusBy = Dead, ""
	}
	info := NodeInfo{
		ID: NodeID(m.ID), Name: m.Name, Hostname: m.Host, Address: m.Address, HTTPPort: m.HTTPPort, GRPCPort: m.GRPCPort,
		Capabilities: slices.Clone(m.Capabilities), Labels: maps.Clone(m.Labels), Version: m.Version, Spreads: maps.Clone(m.Spreads),
		Status: m.Status, StatusBy: m.StatusBy, Drained: m.Drained, StartedAt: m.StartedAt, LastHeartbeat: m.LastHeartbeat,
		CurrentConnections: m.Connections, CurrentJobs: m.Jobs, InFlight: m.InFlight, CPUUsage: m.CPU, MemoryUsage: m.Memory,
	}
	for _, role := range m.Roles {
		info.Roles = append(info.Roles, NodeRole(role))
	}
	return info
}

func newNodeInfos(members []tenure.Member) []NodeInfo {
	nodes := make([]NodeInfo, len(members))
	for i, m := range members {
		nodes[i] = newNodeInfo(m)
	}
	return nodes
}
