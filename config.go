package tenure

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/retry"
)

// Config configures a node. The zero value is ready to use. Times are at most ten years.
type Config struct {
	// Name identifies the node in logs and status output. It need not be
	// unique. Default: the host name and the process id.
	Name string

	// Lease is how long the database reserves the roles of a node that sends no heartbeat.
	// It bounds the failover from a vanished node. At least 100 ms. Default: 10 s; 3 s
	// with leases on SQLite.
	Lease time.Duration
	// RefreshInterval is the time between heartbeats. Default: a third of
	// Lease.
	RefreshInterval time.Duration
	// Margin is how much earlier than the lease the node's trust in its own
	// terms ends. RefreshInterval + Margin must be less than Lease. Default: a
	// tenth of Lease.
	Margin time.Duration
	// CheckInterval is the time between attempts to acquire roles without a
	// notification. Default: 5 s.
	CheckInterval time.Duration
	// LockTimeout bounds how long an attempt to acquire a role waits for fenced
	// transactions of the old term. It must be at least FenceTimeout: otherwise no attempt
	// would last until they are terminated. Default: 10 s, or twice FenceTimeout if
	// longer.
	LockTimeout time.Duration
	// FenceTimeout is how long a fenced transaction of an old term may delay a new term
	// before it is terminated. Default: 5 s, or half of LockTimeout if shorter.
	FenceTimeout time.Duration
	// StopTimeout is how long work in flight may continue, with its term still
	// valid, after the term was asked to end. Default: 10 s.
	StopTimeout time.Duration
	// Settle is an extra wait before a term whose predecessor ended uncleanly.
	// Default: 0; docs/explanation/guarantees.md says when to set it.
	Settle time.Duration
	// FailoverWait is the minimum wait before a term begins on another server
	// than the last term. Set it to the time within which an old primary is
	// fenced, plus one lease. Default: one lease.
	FailoverWait time.Duration
	// SynchronousFailover declares all of the following:
	//
	//   - A promoted standby has every acknowledged commit.
	//   - The old primary acknowledges none afterwards.
	//   - The wall clocks of the servers differ by less than the margin.
	//
	// Then the wait after a failover ends a margin after every node is back. A false
	// declaration, as with synchronous_standby_names = 'ANY 1 (a, b)', permits two
	// leaders. It has no effect with leases.
	SynchronousFailover bool

	// Retry governs opening a new session after a loss and, for elections
	// without their own strategy, acquiring roles. Default: sessions are
	// retried after 100 ms, doubling to 2 s, with jitter, and roles every
	// CheckInterval.
	Retry retry.Strategy
	// Description has the fields the node publishes about itself from the start; see
	// [Node.UpdateDescription].
	Description Description
	// NoLeader makes the node campaign for no role: it only watches. Its elections
	// stay followers.
	NoLeader bool
	// UniqueName makes Open fail with ErrNameTaken while another live node has
	// the same name.
	UniqueName bool
	// Load, if set, is called before each heartbeat and returns how busy the
	// node is. The heartbeat waits for it for at most a twentieth of
	// RefreshInterval and then uses the last result.
	Load func() Load
	// Logger receives log records on a goroutine of the node, so a blocked handler delays
	// nothing else. Default: slog.Default().
	Logger *slog.Logger
	// Clock is for tests. Its methods must neither block nor call the node: the node calls
	// them with its mutex held, to keep a moment and its consequences together. Default:
	// the system clock.
	Clock clocks.Clock
}

// ElectionConfig configures one election. The zero value is ready to use.
type ElectionConfig struct {
	// Retry governs when to try again after another node was found to lead.
	// Default: the node's strategy.
	Retry retry.Strategy
	// WorkRetry governs when this node campaigns again after the work of [Election.Run]
	// returned during its term. Until then it leaves the role to the other candidates,
	// also if there is none. The strategy gets the number of such terms in a row and the
	// error of the last one, or nil. A term of at least 12 CheckIntervals begins a new
	// series. If the strategy gives up, the election stops. Default: CheckInterval,
	// doubling to 12 CheckIntervals.
	WorkRetry retry.Strategy
	// ReconnectGrace delays events after a loss: for at most this long, the election is
	// Reconnecting and does not lead. If it acquires the role again in this time, the term
	// is a new one, but OnLost and OnAcquired are not called. Default: 0, off.
	ReconnectGrace time.Duration
	// Requires are the labels a node needs in its Description to campaign for the role. A
	// node that loses one of them steps down. While no live candidate has all of them, the
	// role has no leader. Every node should require the same.
	Requires map[string]string
	// RequiresNodeRole is the node role a node needs in Description.Roles to campaign for
	// the role, such as "scheduler". It works like Requires. Default: none.
	RequiresNodeRole string
	// Prefers are labels of the preferred leaders of the role. The label tenure.priority,
	// an integer, counts more: a node with a higher priority is preferred. Of equal
	// priorities, the node with more of the labels is preferred. Without the label the
	// priority is 0. Every node should prefer the same labels.
	Prefers map[string]string
	// TakeOverAfter makes this node take over the role from a less preferred leader, which
	// hands over gracefully. Before the take-over, this node must have been able to lead
	// for this long, with one session, and the leader must have led for this long without
	// interruption.
	//
	// If a term after such a take-over lasts less than 12 CheckIntervals, the wait
	// doubles, up to 12 times the longer of TakeOverAfter and CheckInterval. A longer term
	// resets it. Elections for a vacant role are not delayed. At most 24 h. Default: 0,
	// off.
	TakeOverAfter time.Duration
	// Group and GroupLimit limit the roles of a node: it campaigns for at most GroupLimit
	// roles of the elections with the same Group. While it leads or acquires so many,
	// until the work has returned, the other elections of the group wait without an
	// attempt. If work returned during its term (see WorkRetry), the role counts against
	// the limit until the node campaigns for it again, and such terms of all roles of the
	// group are counted together. All elections of a group have the same GroupLimit.
	// Default: no group and no limit.
	Group      string
	GroupLimit int
	// NoReacquire stops the election after a loss, a step-down or a database error of an
	// attempt, instead of campaigning again.
	NoReacquire bool
}

// defaultElectionConfig is shared by all elections with default settings: a node can have
// 10,000 of them.
var defaultElectionConfig ElectionConfig

// shared returns the configuration of an election, which does not change it.
func (c ElectionConfig) shared() *ElectionConfig {
	if reflect.ValueOf(c).IsZero() {
		return &defaultElectionConfig
	}
	return &c
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.RefreshInterval = cmp.Or(c.RefreshInterval, c.Lease/3)
	c.Margin = cmp.Or(c.Margin, c.Lease/10)
	c.CheckInterval = cmp.Or(c.CheckInterval, 5*time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, max(10*time.Second, 2*c.FenceTimeout))
	c.FenceTimeout = cmp.Or(c.FenceTimeout, min(5*time.Second, max(c.LockTimeout/2, time.Millisecond)))
	c.StopTimeout = cmp.Or(c.StopTimeout, 10*time.Second)
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s-%d", cmp.Or(host, "node"), os.Getpid())
	}
	c.Description.Status = cmp.Or(c.Description.Status, StatusActive)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = clocks.System()
	}
	return c
}

// validate checks the settings, with defaults filled in.
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
		if d.value < d.least || d.value > timespan.Longest {
			return bad("the %s is %v; it must be at least %v and at most %v", d.name, d.value, d.least, timespan.Longest)
		}
	}
	if c.Lease > 24*time.Hour {
		return bad("the lease is %v; it must be at most 24h", c.Lease)
	}
	if c.RefreshInterval+c.Margin >= c.Lease {
		return bad("the lease (%v) must be longer than the refresh interval (%v) plus the margin (%v)",
			c.Lease, c.RefreshInterval, c.Margin)
	}
	if c.LockTimeout < c.FenceTimeout {
		return bad("the lock timeout is %v and the fence timeout %v; the lock timeout must be at least the fence timeout: "+
			"otherwise no attempt lasts until fenced transactions of the old term are terminated", c.LockTimeout, c.FenceTimeout)
	}
	if err := NamedRole(c.Name).Validate(); err != nil {
		return bad("the node's name %q must be at most %d bytes of UTF-8 without control characters", c.Name, maxRoleName)
	}
	return c.Description.validate()
}

func (c Config) timing() Timing {
	return Timing{
		Lease: c.Lease, RefreshInterval: c.RefreshInterval, Margin: c.Margin, CheckInterval: c.CheckInterval,
		LockTimeout: c.LockTimeout, FenceTimeout: c.FenceTimeout, Settle: c.Settle, FailoverWait: c.FailoverWait,
		SynchronousFailover: c.SynchronousFailover,
	}
}

// Timing has the protocol settings of a backend; see [Config] for their meaning.
type Timing struct {
	Lease           time.Duration
	RefreshInterval time.Duration
	Margin          time.Duration
	CheckInterval   time.Duration
	LockTimeout     time.Duration
	FenceTimeout    time.Duration
	Settle          time.Duration
	FailoverWait    time.Duration

	SynchronousFailover bool
}
