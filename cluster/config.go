package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/timespan"
)

// Config configures a member. The zero value is ready to use.
type Config struct {
	// Name is the cluster's display name. Default "default".
	Name string

	// Address is where other nodes reach this one: an IP address or a host name. Default:
	// this machine's address for outgoing connections.
	Address  string
	HTTPPort int // 0 for none; otherwise 1 to 65535
	GRPCPort int // as HTTPPort
	// Roles are the node roles of this node. Default: all of [NodeRoles].
	Roles []NodeRole
	// Capabilities are the kinds of work the node can do.
	Capabilities []string
	// Labels describe the node to operators and to the placement of roles.
	Labels map[string]string
	// Version is the program's version. Default: the version of the Go build.
	Version string

	// MinNodes is how many nodes, including this one, must have joined before this node
	// accepts work. Nodes with the node role [Observer] do not count. Until then its
	// status is joining and it campaigns for no role. Once it accepts work, it continues
	// even if nodes leave. Default 0: it accepts work immediately.
	MinNodes int
	// StartupTimeout is how long to wait for MinNodes before [Member.Ready] and
	// [Member.WaitReady] report a failure. The node keeps waiting. Default 0:
	// no limit.
	StartupTimeout time.Duration
	// UniqueNames makes Join fail with tenure.ErrNameTaken while another live
	// node has the same name.
	UniqueNames bool

	Heartbeat HeartbeatConfig
	Shutdown  ShutdownConfig
}

// HeartbeatConfig configures the heartbeat of a member. The zero value is ready
// to use.
type HeartbeatConfig struct {
	// Interval is the longest time between two heartbeats and the time between two samples
	// of the load. Default 5 s. The heartbeat also renews the node's lease, so the
	// interval is the shorter of Interval and the node's RefreshInterval.
	Interval time.Duration
	// DeadThreshold is how long a node must be silent before other nodes mark
	// it dead, if neither the end of its session nor the expiry of its lease
	// was detected earlier. Default 15 s. If the silent node's lease is longer,
	// the lease applies instead.
	DeadThreshold time.Duration
	// SkipMarkingDead leaves it to the other nodes to mark dead nodes.
	SkipMarkingDead bool
}

// ShutdownConfig configures how a member leaves. The zero value is ready to use.
type ShutdownConfig struct {
	// DrainTimeout is how long to wait for work in flight. Default 30 s.
	DrainTimeout time.Duration
	// ForceAfter limits the time to leave. After it the session is closed: all roles are
	// released even if work is still running. Default 0: the drain timeout plus the node's
	// StopTimeout plus two leases.
	ForceAfter time.Duration
	// HandOver hands the roles of a leaving node over to HandOverTo. If HandOverTo is not
	// set, they go to nodes with the node role scheduler and everything the election
	// requires: to the most preferred of them and, among equals, to the least loaded.
	// Without HandOver, the standbys compete for them.
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

// validate makes the checks missing in tenure.Open: durations, the minimum of nodes, and
// empty roles and capabilities.
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
		if d.value < d.least || d.value > timespan.Longest {
			return bad("the %s is %v; it must be at least %v and at most %v", d.name, d.value, d.least, timespan.Longest)
		}
	}
	switch {
	case c.MinNodes < 0:
		return bad("the minimum of nodes is %d; it must be at least 0", c.MinNodes)
	case slices.Contains(c.Roles, ""):
		return bad("a node role is empty; omit the node roles for all of %v", NodeRoles())
	case slices.Contains(c.Capabilities, ""):
		return bad("a capability of the node is empty")
	}
	return nil
}
