package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/timespan"
)

// Config configures an agent.
type Config struct {
	// Backend is where the agent opens its session. Required.
	Backend tenure.Backend
	// Path is where the agent creates its socket, in a directory with write access for its
	// user only. The file next to it with the suffix .lock excludes a second agent.
	// Required.
	Path string
	// Name is the name of the agent's node. Default: "agent@" and the host name.
	Name string
	// Timing is the timing of the agent's session. It bounds the trust of all nodes. It
	// has the defaults of tenure.Config. The lease is 10 s by default on every database,
	// as for the nodes, which cannot know the database. A node with a longer Settle or
	// FailoverWait is refused, and a node with too rare heartbeats for the lease.
	Timing tenure.Timing
	// MaxConnections limits the connections of nodes. Default: 1000.
	MaxConnections int
	// Logger receives log records. A blocked handler delays only the log. Default:
	// slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	t := &c.Timing
	t.Lease = cmp.Or(t.Lease, 10*time.Second)
	t.RefreshInterval = cmp.Or(t.RefreshInterval, t.Lease/3)
	t.Margin = cmp.Or(t.Margin, t.Lease/10)
	t.CheckInterval = cmp.Or(t.CheckInterval, 5*time.Second)
	t.LockTimeout = cmp.Or(t.LockTimeout, max(10*time.Second, 2*t.FenceTimeout))
	t.FenceTimeout = cmp.Or(t.FenceTimeout, min(5*time.Second, max(t.LockTimeout/2, time.Millisecond)))
	c.MaxConnections = cmp.Or(c.MaxConnections, 1000)
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = "agent@" + cmp.Or(host, "localhost")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate checks the settings, with defaults filled in.
func (c Config) validate() error {
	t := c.Timing
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Backend == nil:
		return bad("the agent has no backend")
	case c.Path == "":
		return bad("the path of the agent's socket is empty")
	case t.Lease < 100*time.Millisecond || t.Lease > 24*time.Hour:
		return bad("the lease is %v; it must be at least 100ms and at most 24h", t.Lease)
	case t.RefreshInterval < time.Millisecond || t.Margin < time.Millisecond || t.CheckInterval < time.Millisecond:
		return bad("the refresh interval, the margin and the check interval must be at least 1ms")
	case t.LockTimeout < t.FenceTimeout || t.FenceTimeout < time.Millisecond:
		return bad("the fence timeout must be at least 1ms and at most the lock timeout")
	case t.Settle < 0 || t.FailoverWait < 0:
		return bad("settle and failover wait must be at least 0")
	case max(t.RefreshInterval, t.Margin, t.CheckInterval, t.LockTimeout, t.Settle, t.FailoverWait) > timespan.Longest:
		return bad("the times of an agent must be at most %v", timespan.Longest)
	case t.RefreshInterval+t.Margin >= t.Lease:
		return bad("the lease (%v) must be longer than the refresh interval (%v) plus the margin (%v)", t.Lease, t.RefreshInterval, t.Margin)
	case tenure.NamedRole(c.Name).Validate() != nil:
		return bad("the agent's name %q must be at most 255 bytes of UTF-8 without control characters", c.Name)
	}
	return nil
}

// tick is the longest time between two checks of trust and of the leases of nodes.
func (c Config) tick() time.Duration { return min(time.Second, c.Timing.Lease/10) }
