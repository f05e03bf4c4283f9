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

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Store is a backend that keeps a registry of nodes. *postgres.Backend is one.
// What it answers does not go through a node's session.
type Store interface {
	tenure.Backend

	// Members returns the nodes that the registry has, the dead among them,
	// oldest session first.
	Members(ctx context.Context) ([]tenure.Member, error)
	// MarkDead marks the nodes as dead that were silent for longer than the
	// threshold and their own lease, and returns their ids.
	MarkDead(ctx context.Context, threshold time.Duration) ([]uuid.UUID, error)
	// Forget removes a dead node. It returns an error that matches
	// tenure.ErrUnknownNode if there is no dead node of this id.
	Forget(ctx context.Context, node uuid.UUID) error
	// ForgetDead removes the dead nodes that were heard of last longer ago than
	// a time, and returns their ids.
	ForgetDead(ctx context.Context, olderThan time.Duration) ([]uuid.UUID, error)
}

// Member is this process's part in a cluster: a node, and what it tells and
// knows of the others. It is safe for concurrent use.
type Member struct {
	node        *tenure.Node
	store       Store
	config      Config
	policy      atomic.Pointer[ShutdownConfig] // instead of that in config, which may be older
	stopTimeout time.Duration                  // of the node's configuration
	view        *view
	heartbeat   *HeartbeatLoop
	readiness   *readiness
	departure   *departure

	life  context.Context // ends when the member begins to leave
	leave context.CancelFunc

	mu    sync.Mutex     // held to add to group
	group sync.WaitGroup // every goroutine of the member
}

// Join opens a node and makes it a member of the cluster. It returns when the
// registry has the node and the node has read the registry; see
// [Member.WaitReady] for when it accepts work. Errors are those of
// [tenure.Open], where a setting of either configuration that cannot be used
// matches tenure.ErrInvalidConfig; with UniqueNames also tenure.ErrNameTaken,
// and tenure.ErrUnsupported if the backend keeps no registry. The context bounds
// joining only.
func Join(ctx context.Context, store Store, nodeConfig tenure.Config, config Config) (*Member, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("joining the cluster: %w", err)
	}
	m := &Member{store: store, config: config, readiness: newReadiness(config.MinNodes), departure: newDeparture()}
	m.heartbeat = &HeartbeatLoop{store: store, config: config.Heartbeat, told: nodeConfig.Load, inFlight: m.InFlight()}
	node, err := tenure.Open(ctx, store, m.nodeConfig(nodeConfig))
	if err != nil {
		return nil, fmt.Errorf("joining the cluster: %w", err)
	}
	m.node = node
	m.view = newView(node.Members, node.Timing().CheckInterval, node.Clock(), node.Logger())
	if err := m.firstReading(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the registry of nodes: %w", err), node.Close(ctx))
	}
	m.heartbeat.node, m.heartbeat.view = node, m.view
	m.life, m.leave = context.WithCancel(context.Background())
	m.stopTimeout = nodeConfig.StopTimeout
	m.setShutdown(config.Shutdown)
	m.begin()
	node.OnDrain(m.asked)
	return m, nil
}

// firstReading reads the registry. If the session is lost before that, it waits
// for the node's next one, as long as the context allows.
func (m *Member) firstReading(ctx context.Context) error {
	news, stop := m.node.Subscribe()
	defer stop()
	for {
		err := m.view.read(ctx)
		if err == nil || !errors.Is(err, tenure.ErrSessionLost) && !errors.Is(err, tenure.ErrConnection) {
			return err
		}
		wait(ctx, m.node.Clock(), m.node.Timing().CheckInterval, news) // among it, that a session stands
		if ctx.Err() != nil {
			return err
		}
	}
}

// nodeConfig completes the configuration of the node.
func (m *Member) nodeConfig(nodeConfig tenure.Config) tenure.Config {
	nodeConfig.Description = LocalNode(m.config).description()
	if m.config.MinNodes <= 1 {
		nodeConfig.Description.Status = Active
	}
	nodeConfig.UniqueName = m.config.UniqueNames
	nodeConfig.Load = m.heartbeat.load
	if d, ok := m.store.(tenure.LeaseDefaulter); ok {
		nodeConfig.Lease = cmp.Or(nodeConfig.Lease, d.DefaultLease())
	}
	refresh := cmp.Or(nodeConfig.RefreshInterval, cmp.Or(nodeConfig.Lease, defaultLease)/3)
	nodeConfig.RefreshInterval = min(refresh, m.config.Heartbeat.Interval)
	return nodeConfig
}

// defaultLease is that of tenure.Config.
const defaultLease = 10 * time.Second

// begin starts what the member runs.
func (m *Member) begin() {
	news, stopNews := m.node.Subscribe()
	m.run(func() {
		defer stopNews()
		m.view.follow(m.life, news)
	})
	if beat, err := m.heartbeat.begin(m.life); err == nil { // nobody else has it yet
		m.run(beat)
	}
	m.run(func() {
		defer m.readiness.startTimer(m.config.StartupTimeout, m.node.Clock())()
		m.awaitNodes(m.life)
	})
}

// run runs fn on a goroutine that Close waits for; fn must end with the member's
// life. It reports false if the member leaves already.
func (m *Member) run(fn func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
		return false
	}
	m.group.Go(fn)
	return true
}

// Node returns the member's node, on which elections stand.
func (m *Member) Node() *tenure.Node { return m.node }

// ID returns the node's id.
func (m *Member) ID() NodeID { return NodeID(m.node.ID()) }

// Nodes returns the nodes of the cluster as this member knows them, the dead
// among them, those of older sessions first. It asks no database: while the
// member has no session, it knows of no changes. See [Registry] for what the
// database says.
func (m *Member) Nodes() []NodeInfo {
	nodes, _, _, _ := m.view.snapshot()
	return slices.Clone(nodes)
}

// SetStatus gives this node another status. Draining is [Member.Drain], and
// Active [Member.Undrain] of a node that drains; Active also takes a member into
// service that still waits for the minimum of nodes. Joining takes one that does
// not drain out of service for a while: it stands for no role, but keeps those
// that it leads. A node cannot call itself dead: the error matches
// tenure.ErrInvalidConfig. Other errors are those of Drain, Undrain and
// [tenure.Node.UpdateDescription].
func (m *Member) SetStatus(ctx context.Context, status NodeStatus) error {
	switch status {
	case Draining:
		return m.Drain(ctx)
	case Active:
		m.readiness.meet()
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

// Close leaves the cluster at once: it waits for no work in flight but that
// under a term, as [tenure.Node.Close] does. See [Member.Shutdown] for leaving
// politely.
func (m *Member) Close(ctx context.Context) error {
	m.departure.refuse()
	m.mu.Lock()
	m.leave()
	m.mu.Unlock()
	err := m.node.Close(ctx)
	m.group.Wait()
	return err
}
