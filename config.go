package tenure

import (
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Config configures a node. The zero value is ready to use.
type Config struct {
	// Name is what people call the node, in logs and status; default the
	// host's name and the process id. It need not be unique.
	Name string

	// Lease is how long the database keeps a silent node's roles: the bound on
	// replacing a leader that vanished without a word. Default 10 s, with leases
	// on SQLite 3 s; at least 100 ms.
	Lease time.Duration
	// RefreshInterval is the time between heartbeats. Default a third of Lease.
	RefreshInterval time.Duration
	// Margin is how much earlier than the lease a node's trust in its own term
	// ends. Default a tenth of Lease. RefreshInterval + Margin must be less
	// than Lease.
	Margin time.Duration
	// CheckInterval is the time between attempts to take roles that nobody
	// announced as vacant: the fallback for lost notifications. Default 5 s.
	CheckInterval time.Duration
	// LockTimeout bounds one attempt to take a role whose old term is kept
	// alive by fenced transactions. It must be at least FenceTimeout: otherwise
	// no attempt would last until those are ended. Default 10 s, or twice
	// FenceTimeout if that is longer.
	LockTimeout time.Duration
	// FenceTimeout is how long a fenced transaction of an old term may delay a
	// new one before its backend is ended. Default 5 s, or half of LockTimeout
	// if that is shorter.
	FenceTimeout time.Duration
	// StopTimeout is how long work in flight may go on, still trusted, after a
	// term was asked to end. Default 10 s.
	StopTimeout time.Duration
	// Settle is an extra wait before a term begins whose predecessor ended
	// uncleanly. Default 0: see the page on guarantees.
	Settle time.Duration
	// FailoverWait is the least wait before a term begins on another server
	// than the last one's, where the default is one lease: the bound within
	// which an old primary is fenced off.
	FailoverWait time.Duration

	// Retry governs opening a new session after a loss and, for elections that
	// have none of their own, acquiring. By default a session is tried again
	// after 100 ms, doubling to 2 s, jittered, and roles every CheckInterval.
	Retry RetryStrategy
	// Description is what the node tells the others about itself, from the
	// first moment on; see [Node.UpdateDescription].
	Description Description
	// UniqueName refuses to open the node, with ErrNameTaken, while another
	// living node has the same name.
	UniqueName bool
	// Load, if set, is called before each heartbeat and tells how busy the node
	// is. A heartbeat waits for it for a twentieth of RefreshInterval at most,
	// and then uses the last answer.
	Load func() Load
	// Logger receives what happens, on a goroutine of the node: a handler that
	// blocks delays nothing else. Default slog.Default().
	Logger *slog.Logger
	// Clock is for tests. Default the machine's clock.
	Clock Clock
}

// ElectionConfig configures one election. The zero value is ready to use.
type ElectionConfig struct {
	// Retry governs when to try again after another was found to lead; default
	// the node's.
	Retry RetryStrategy
	// ReconnectGrace damps events: if the session is lost while leading, the
	// election is Reconnecting, and not leader, for at most this long. If it
	// gets the role back in that time, OnLost and OnAcquired stay silent; the
	// term is a new one. 0 disables it.
	ReconnectGrace time.Duration
	// NoReacquire stops the election after a loss or a step-down instead of
	// standing again.
	NoReacquire bool
}

func (c Config) withDefaults() Config {
	c.Lease = or(c.Lease, 10*time.Second)
	c.RefreshInterval = or(c.RefreshInterval, c.Lease/3)
	c.Margin = or(c.Margin, c.Lease/10)
	c.CheckInterval = or(c.CheckInterval, 5*time.Second)
	c.LockTimeout = or(c.LockTimeout, max(10*time.Second, 2*c.FenceTimeout))
	c.FenceTimeout = or(c.FenceTimeout, min(5*time.Second, max(c.LockTimeout/2, time.Millisecond)))
	c.StopTimeout = or(c.StopTimeout, 10*time.Second)
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s-%d", or(host, "node"), os.Getpid())
	}
	if c.Description.Status == "" {
		c.Description.Status = StatusActive
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
	return c
}

// validate checks the settings against each other. c has its defaults.
func (c Config) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"lease", c.Lease, 100 * time.Millisecond},
		{"refresh interval", c.RefreshInterval, time.Millisecond},
		{"margin", c.Margin, time.Millisecond},
		{"check interval", c.CheckInterval, time.Millisecond},
		{"lock timeout", c.LockTimeout, time.Millisecond},
		{"fence timeout", c.FenceTimeout, time.Millisecond},
		{"stop timeout", c.StopTimeout, time.Millisecond},
		{"settle", c.Settle, 0},
		{"failover wait", c.FailoverWait, 0},
	} {
		if d.value < d.least {
			return bad("the %s is %v; the least is %v", d.name, d.value, d.least)
		}
	}
	if c.Lease > 24*time.Hour {
		return bad("the lease is %v; the most is 24h", c.Lease)
	}
	if c.RefreshInterval+c.Margin >= c.Lease {
		return bad("the lease (%v) must be longer than the refresh interval (%v) plus the margin (%v)",
			c.Lease, c.RefreshInterval, c.Margin)
	}
	if c.LockTimeout < c.FenceTimeout {
		return bad("the lock timeout is %v and the fence timeout %v; the lock timeout must be at least the fence timeout: "+
			"no attempt to take a role would last until fenced transactions of the old term are ended", c.LockTimeout, c.FenceTimeout)
	}
	if err := NamedRole(c.Name).Validate(); err != nil {
		return bad("the node's name %q cannot be used: at most %d bytes of UTF-8 without control characters", c.Name, MaxRoleName)
	}
	return c.Description.validate()
}

func (c Config) timing() Timing {
	return Timing{
		Lease: c.Lease, RefreshInterval: c.RefreshInterval, Margin: c.Margin, CheckInterval: c.CheckInterval,
		LockTimeout: c.LockTimeout, FenceTimeout: c.FenceTimeout, Settle: c.Settle, FailoverWait: c.FailoverWait,
	}
}
