package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// Member is a node that has joined a cluster. It is safe for concurrent use.
type Member struct {
	node        *tenure.Node
	store       Store
	config      Config
	policy      atomic.Pointer[ShutdownConfig] // current settings; those in config may be older
	stopTimeout time.Duration                  // from the node's configuration
	view        *view
	heartbeat   *HeartbeatLoop
	readiness   *readiness
	drainState  *drainState
	noLeader    bool // the node campaigns for no role

	ctx    context.Context // ends when the member begins to close
	cancel context.CancelFunc

	mu    sync.Mutex     // guards adding to group
	group sync.WaitGroup // all goroutines of the member
}

// Join opens a node and makes it a member of the cluster. It returns when the node is in
// the registry and has read it; [Member.WaitReady] returns when it accepts work. If the
// session is lost, or the database times out, while the node reads the registry, it reads
// again until ctx ends. Canceling ctx after Join has returned has no effect.
//
// It returns the errors of [tenure.Open]. An invalid setting of either configuration
// matches tenure.ErrInvalidConfig. With UniqueNames, the error can also match
// tenure.ErrNameTaken. It matches tenure.ErrUnsupported if the backend has no registry.
func Join(ctx context.Context, store Store, nodeConfig tenure.Config, config Config) (*Member, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	m := &Member{store: store, config: config, noLeader: nodeConfig.NoLeader, readiness: newReadiness(config.MinNodes), drainState: newDrainState()}
	m.heartbeat = &HeartbeatLoop{store: store, config: config.Heartbeat, programLoad: nodeConfig.Load, inFlight: m.InFlight()}
	node, err := tenure.Open(ctx, store, m.nodeConfig(nodeConfig))
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	m.node = node
	m.view = newView(node.Members, node.Timing().CheckInterval, node.Clock(), node.Logger())
	if s, ok := store.(interface{ ReportsNodeChanges() bool }); ok && s.ReportsNodeChanges() {
		m.view.followReports(node.RefreshMembers)
	}
	m.heartbeat.node, m.heartbeat.view = node, m.view
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.stopTimeout = nodeConfig.StopTimeout
	m.setShutdown(config.Shutdown)
	node.OnDrain(m.handleRequest) // first: others can see the node already, and the read can take long
	if err := m.readRegistry(ctx); err != nil {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), node.Timing().CheckInterval) // an ended ctx would abort the session
		defer cancel()
		return nil, errors.Join(fmt.Errorf("read the registry of nodes: %w", err), m.Close(leaving))
	}
	m.start()
	m.drainState.refuseWorkIfDrained(ctx, node)
	return m, nil
}

// readRegistry reads the registry for the first time. If the session is lost first, it
// waits for the node's next session while ctx allows. It reads again after a passing
// failure of the database, such as a timeout.
func (m *Member) readRegistry(ctx context.Context) error {
	wakeups, stop := m.node.Subscribe()
	defer stop()
	for {
		err := m.view.read(ctx)
		if err == nil || !errors.Is(err, tenure.ErrSessionLost) && !errors.Is(err, tenure.ErrConnection) && !errors.Is(err, dberr.ErrDatabase) {
			return err
		}
		m.node.Logger().Warn("reading the registry of nodes failed; trying again", "error", err)
		wakeup.AwaitOn(ctx, m.node.Clock(), m.node.Timing().CheckInterval, wakeups) // also wakes up when a session is open
		if ctx.Err() != nil {
			return err
		}
	}
}

// nodeConfig completes the node's configuration.
func (m *Member) nodeConfig(nodeConfig tenure.Config) tenure.Config {
	nodeConfig.Description = LocalNode(m.config).description()
	if m.config.MinNodes <= 1 {
		nodeConfig.Description.Status = Active
	}
	if roles := &nodeConfig.Description.Roles; nodeConfig.NoLeader {
		if len(m.config.Roles) == 0 {
			*roles = slices.DeleteFunc(*roles, func(role string) bool { return role == string(Scheduler) })
		}
		if !slices.Contains(*roles, string(Observer)) {
			*roles = append(*roles, string(Observer))
		}
	}
	nodeConfig.UniqueName = m.config.UniqueNames
	nodeConfig.Load = m.heartbeat.load
	if d, ok := m.store.(interface{ DefaultLease() time.Duration }); ok {
		nodeConfig.Lease = cmp.Or(nodeConfig.Lease, d.DefaultLease())
	}
	refresh := cmp.Or(nodeConfig.RefreshInterval, cmp.Or(nodeConfig.Lease, defaultLease)/3)
	nodeConfig.RefreshInterval = min(refresh, m.config.Heartbeat.Interval)
	return nodeConfig
}

// defaultLease is the default of tenure.Config.
const defaultLease = 10 * time.Second

// start starts the member's goroutines.
func (m *Member) start() {
	wakeups, stopNews := m.node.Subscribe()
	m.run(func() {
		defer stopNews()
		m.view.follow(m.ctx, wakeups)
	})
	if beat, err := m.heartbeat.begin(m.ctx); err == nil { // nothing else can have started it yet
		m.run(beat)
	}
	m.run(func() {
		defer m.readiness.startTimer(m.config.StartupTimeout, m.node.Clock())()
		m.awaitMinNodes(m.ctx)
	})
}

// run runs fn in a goroutine, and Close waits for it; fn must return when m.ctx ends. It
// returns false if the member is closing.
func (m *Member) run(fn func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return false
	}
	m.group.Go(fn)
	return true
}

// Node returns the member's node, for elections.
func (m *Member) Node() *tenure.Node { return m.node }

// ID returns the node's id.
func (m *Member) ID() NodeID { return m.node.ID() }

// Nodes returns the nodes of the cluster as known to this member, including dead ones,
// oldest session first. It does not query the database. While the member has no session,
// it learns of no changes. Load and LastHeartbeat come from the last read of the registry.
// They can be minutes old because they change without a report; see [Member.RecentNodes].
// The caller owns the slice but must not modify the maps and slices in it.
func (m *Member) Nodes() []NodeInfo {
	if list, _, _ := m.view.snapshot(); list != nil {
		return slices.Clone(list.nodes)
	}
	return []NodeInfo{}
}

// RecentNodes returns the same nodes, with a load and a last heartbeat read at most age
// ago. It reads the registry over the member's session if the last read is older. If ctx
// ends first or the read fails, it returns the nodes of the last read and the error, as
// [tenure.Node.Members] does.
func (m *Member) RecentNodes(ctx context.Context, age time.Duration) ([]NodeInfo, error) {
	_, err := m.view.notOlder(ctx, age)
	return m.Nodes(), err
}

// SetStatus changes this node's status. Draining calls [Member.Drain]. Active calls
// [Member.Undrain] if the node drains, and otherwise ends the wait for the minimum of
// nodes. Joining, if the node does not drain, makes it stop campaigning while it keeps its
// terms. A node cannot set its own status to dead: the error matches
// tenure.ErrInvalidConfig. Other errors come from Drain, Undrain and
// [tenure.Node.UpdateDescription].
func (m *Member) SetStatus(ctx context.Context, status NodeStatus) error {
	switch status {
	case Draining:
		return m.Drain(ctx)
	case Active:
		m.readiness.markMet()
		if m.node.Description().Status == Draining {
			return m.Undrain(ctx)
		}
	}
	return m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status != Draining || status != Joining {
			d.Status = status
		}
	})
}

// Close leaves the cluster immediately. Like [tenure.Node.Close], it waits only
// for the work of terms. [Member.Shutdown] leaves gracefully.
func (m *Member) Close(ctx context.Context) error {
	m.drainState.refuseWork()
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	err := m.node.Close(ctx)
	m.group.Wait()
	return err
}
