package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
)

// Config configures a member. The zero value is ready to use.
type Config struct {
	// Name is the cluster's, for people. Default "default".
	Name string

	// Address is where other nodes reach this one: an IP address or a host's
	// name. Default the address that this machine uses toward others.
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
	// SkipMarkingDead leaves the marking to the other nodes.
	SkipMarkingDead bool
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

const (
	defaultName          = "default"
	defaultInterval      = 5 * time.Second
	defaultDeadThreshold = 15 * time.Second
	defaultDrainTimeout  = 30 * time.Second
)

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, defaultName)
	c.Heartbeat.Interval = cmp.Or(c.Heartbeat.Interval, defaultInterval)
	c.Heartbeat.DeadThreshold = cmp.Or(c.Heartbeat.DeadThreshold, defaultDeadThreshold)
	c.Shutdown.DrainTimeout = cmp.Or(c.Shutdown.DrainTimeout, defaultDrainTimeout)
	return c
}

// validate checks what tenure.Open does not: it refuses ports out of range and
// texts that cannot be kept.
func (c Config) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"startup timeout", c.StartupTimeout, 0},
		{"heartbeat interval", c.Heartbeat.Interval, time.Millisecond},
		{"dead threshold", c.Heartbeat.DeadThreshold, time.Millisecond},
		{"drain timeout", c.Shutdown.DrainTimeout, 0},
		{"time after which a shutdown is forced", c.Shutdown.ForceAfter, 0},
	} {
		if d.value < d.least {
			return bad("the %s is %v; the least is %v", d.name, d.value, d.least)
		}
	}
	switch {
	case c.MinNodes < 0:
		return bad("the minimum of nodes is %d; the least is 0, for none", c.MinNodes)
	case slices.Contains(c.Roles, ""):
		return bad("a role of the node is empty; leave the roles out for all of %v", NodeRoles())
	case slices.Contains(c.Capabilities, ""):
		return bad("a capability of the node is empty")
	}
	return nil
}
