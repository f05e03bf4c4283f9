package cluster

import (
	"time"
)

// Config configures a member. The zero value is ready to use.
type Config struct {
	// Name is the cluster's, for people. Default "default".
	Name string

	// Address is where other nodes reach this one: an IP address or a host's
	// name. Default the address that this machine uses towards others.
	Address  string
	HTTPPort int // 0 for none; otherwise 1 to 65535
	GRPCPort int // as HTTPPort
	// Roles are what this node is there for. Default all of [NodeRoles].
	Roles []NodeRole
	// Capabilities say what kinds of work the node can do.
	Capabilities []string
	// Labels describe the node for the placement of roles and for people.
	Labels map[string]string
	// Version is the program's. Default what the Go build says of it.
	Version string

	// MinNodes is how many nodes, this one among them, must have come before
	// this one accepts work; until then its status is joining and it stands for
	// no role. Once it accepts work it goes on, however many leave. Default 0:
	// at once.
	MinNodes int
	// StartupTimeout is how long to wait for MinNodes before [Member.Ready] and
	// [Member.WaitReady] say that it failed. The node goes on waiting. Default
	// 0: no limit.
	StartupTimeout time.Duration
	// UniqueNames refuses to join, with tenure.ErrNameTaken, while another
	// living node has the same name.
	UniqueNames bool

	Heartbeat HeartbeatConfig
	Shutdown  ShutdownConfig
}

// HeartbeatConfig configures the heartbeat of a member. The zero value is ready
// to use.
type HeartbeatConfig struct {
	// Interval is the most time between two heartbeats, and the time between two
	// samples of the load. Default 5 s. The heartbeat is the same statement that
	// renews the node's lease, so it is sent as often as the shorter of Interval
	// and the node's RefreshInterval says.
	Interval time.Duration
	// DeadThreshold is how long a node must have been silent to be marked as
	// dead by others, if neither the end of its session nor that of its lease
	// has told them before. Default 15 s; a longer lease of the silent node
	// counts instead.
	DeadThreshold time.Duration
	// KeepDeadNodes leaves the marking to the other nodes.
	KeepDeadNodes bool
}

// ShutdownConfig configures how a member leaves. The zero value is ready to use.
type ShutdownConfig struct {
	// DrainTimeout is how long work in flight may go on. Default 30 s.
	DrainTimeout time.Duration
	// ForceAfter bounds the whole of leaving; then the session is cut, which
	// frees all roles whatever still runs. Default 0: the drain timeout, the
	// node's StopTimeout and two leases.
	ForceAfter time.Duration
	// HandOver gives the roles of a leaving node to HandOverTo, or if that is
	// not set, to the nodes with the least load that take part in the same
	// roles. Without it the other nodes settle it among themselves.
	HandOver   bool
	HandOverTo NodeID
}
