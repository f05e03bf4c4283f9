package record

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Node is a node of a cluster.
type Node struct {
	ID           uuid.UUID          `json:"id"`
	Name         string             `json:"name"`
	Hostname     string             `json:"hostname"`
	Status       tenure.NodeStatus  `json:"status"`
	Drained      bool               `json:"drained"` // draining, with nothing left to do
	Roles        []string           `json:"roles"`   // what it is there for
	Leads        []string           `json:"leads"`   // the roles that it leads
	Capabilities []string           `json:"capabilities"`
	Labels       map[string]string  `json:"labels"`
	Spreads      map[string]float64 `json:"spreads"` // its weight in each
	Address      string             `json:"address"`
	HTTPPort     int                `json:"http_port"` // 0 for none
	GRPCPort     int                `json:"grpc_port"`
	Version      string             `json:"version"`

	StartedAt     Time    `json:"started_at"`
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

// NewNode returns the record of a node that leads some roles.
func NewNode(m tenure.Member, leads []string) Node {
	node := Node{
		ID: m.ID, Name: m.Name, Hostname: m.Host, Status: m.Status, Drained: m.Drained,
		Roles: list(m.Roles), Leads: list(leads), Capabilities: list(m.Capabilities),
		Labels: m.Labels, Spreads: m.Spreads,
		Address: m.Address, HTTPPort: m.HTTPPort, GRPCPort: m.GRPCPort, Version: m.Version,
		StartedAt: Time(m.StartedAt), LastHeartbeat: Time(m.LastHeartbeat),
		SilentSeconds: m.SilentFor.Seconds(), LeaseSeconds: m.Lease.Seconds(),
		Connections: m.Connections, Jobs: m.Jobs, InFlight: m.InFlight,
		CPUUsage: m.CPU, MemoryUsage: m.Memory, Load: m.Mean(),
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Spreads == nil {
		node.Spreads = map[string]float64{}
	}
	node.UptimeSeconds = Uptime(m).Seconds()
	return node
}

// Uptime is how long a node has lived when it was read, a dead one until it was
// heard of last.
func Uptime(m tenure.Member) time.Duration {
	lived := m.LastHeartbeat.Sub(m.StartedAt)
	if m.Status != tenure.StatusDead {
		lived += m.SilentFor
	}
	return max(0, lived)
}

func list(texts []string) []string { return append([]string{}, texts...) }

// Counts says how many nodes have which status.
type Counts struct {
	Active   int `json:"active"`
	Draining int `json:"draining"`
	Dead     int `json:"dead"`
	Joining  int `json:"joining"`
	Total    int `json:"total"`
}

// Cluster is all nodes, the dead among them, and who leads.
type Cluster struct {
	Name    string       `json:"name"`
	Nodes   []Node       `json:"nodes"`
	Leaders []RoleLeader `json:"leaders"` // of the roles that anybody leads
	Counts  Counts       `json:"counts"`
}

// RoleLeader is a role with its leader, null if nobody leads it.
type RoleLeader struct {
	Role   string  `json:"role"`
	Leader *Leader `json:"leader"`
}
