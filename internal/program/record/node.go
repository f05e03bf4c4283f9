package record

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// Profile is a node's published description of itself.
type Profile struct {
	ID           uuid.UUID          `json:"id"`
	Name         string             `json:"name"`
	Hostname     string             `json:"hostname"`
	Status       tenure.NodeStatus  `json:"status"`
	StatusBy     string             `json:"requested_by"` // requester of the status, if any
	Drained      bool               `json:"drained"`      // draining, with nothing left to do
	Roles        []string           `json:"node_roles"`
	Capabilities []string           `json:"capabilities"`
	Labels       map[string]string  `json:"labels"`
	Spreads      map[string]float64 `json:"spreads"` // its weight in each
	Address      string             `json:"address"`
	HTTPPort     int                `json:"http_port"` // 0 for none
	GRPCPort     int                `json:"grpc_port"`
	Version      string             `json:"version"`
	StartedAt    Time               `json:"started_at"`
}

// NewProfile returns the profile of a node.
func NewProfile(info tenure.NodeInfo, d tenure.Description, started time.Time) Profile {
	profile := Profile{
		ID: info.ID, Name: info.Name, Hostname: info.Host, Status: d.Status, StatusBy: d.StatusBy, Drained: d.Drained,
		Roles: list(d.Roles), Capabilities: list(d.Capabilities), Labels: d.Labels, Spreads: d.Spreads,
		Address: d.Address, HTTPPort: d.HTTPPort, GRPCPort: d.GRPCPort, Version: d.Version, StartedAt: Time(started),
	}
	if profile.Labels == nil {
		profile.Labels = map[string]string{}
	}
	if profile.Spreads == nil {
		profile.Spreads = map[string]float64{}
	}
	return profile
}

// Node is a node of a cluster.
type Node struct {
	NodeState
	Leads    []string `json:"leads"`    // the roles that it leads
	Replaced bool     `json:"replaced"` // it is dead, and a node of the same name started later
}

// NodeState is a node with what its last heartbeat said.
type NodeState struct {
	Profile

	UptimeSeconds float64 `json:"uptime_seconds"`
	LastHeartbeat Time    `json:"last_heartbeat"`
	SilentSeconds float64 `json:"silent_seconds"` // since the last heartbeat
	LeaseSeconds  float64 `json:"lease_seconds"`

	Connections int     `json:"current_connections"`
	Jobs        int     `json:"current_jobs"`
	InFlight    int     `json:"in_flight"`
	CPUUsage    float64 `json:"cpu_usage"`    // percent
	MemoryUsage float64 `json:"memory_usage"` // percent
	Load        float64 `json:"load"`         // from 0 to 1: the mean of both
}

// NewNode returns the record of a node and its led roles.
func NewNode(m tenure.Member, leads []string) Node {
	return Node{NodeState: NewNodeState(m), Leads: list(leads)}
}

// NewNodeState returns the record of a node without its roles.
func NewNodeState(m tenure.Member) NodeState {
	return NodeState{
		Profile: NewProfile(m.NodeInfo, m.Description, m.StartedAt), UptimeSeconds: Uptime(m).Seconds(),
		LastHeartbeat: Time(m.LastHeartbeat), SilentSeconds: m.SilentFor.Seconds(), LeaseSeconds: m.Lease.Seconds(),
		Connections: m.Connections, Jobs: m.Jobs, InFlight: m.InFlight,
		CPUUsage: m.CPU, MemoryUsage: m.Memory, Load: m.Mean(),
	}
}

// Uptime is the time from a node's start to the read, or to its last heartbeat if it is
// dead.
func Uptime(m tenure.Member) time.Duration {
	lived := m.LastHeartbeat.Sub(m.StartedAt)
	if m.Status != tenure.StatusDead {
		lived += m.SilentFor
	}
	return max(0, lived)
}

func list(texts []string) []string { return append([]string{}, texts...) }

// Counts are the numbers of nodes by status.
type Counts struct {
	Active   int `json:"active"`
	Draining int `json:"draining"`
	Dead     int `json:"dead"`
	Joining  int `json:"joining"`
	Replaced int `json:"replaced"` // dead, and another node of the same name started later
	Total    int `json:"total"`
}

// Cluster is all nodes, the dead among them, and who leads.
type Cluster struct {
	Name    string       `json:"name"`
	Nodes   []Node       `json:"nodes"`
	Leaders []RoleLeader `json:"leaders"` // of the roles that have a leader
	Counts  Counts       `json:"counts"`
	// Unplaced are shared roles without a living node allowed to lead them.
	Unplaced []Unplaced `json:"unplaced"`
}

// Unplaced is a role without a living node allowed to lead it.
type Unplaced struct {
	Role   string `json:"role"`
	Reason string `json:"reason"`
}

// NewUnplaced returns the records of unplaced roles.
func NewUnplaced(roles []cluster.UnplacedRole) []Unplaced {
	unplaced := make([]Unplaced, len(roles))
	for i, role := range roles {
		unplaced[i] = Unplaced{role.Role, role.Reason}
	}
	return unplaced
}

// RoleLeader is a role with its leader, null if no node leads it.
type RoleLeader struct {
	Role   string  `json:"role"`
	Leader *Leader `json:"leader"`
}

// NodeChange is a node after it joined, left, or changed its profile.
type NodeChange struct {
	Time   Time    `json:"time"`
	Change string  `json:"change"` // joined, updated or left
	Node   Profile `json:"node"`
}
