package server

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// host is one session of the agent with the backend, and the nodes sharing it. The
// goroutine of serve is the only caller of the session's methods, apart from Abort. A host
// ends with its session; the server then makes another one.
type host struct {
	cfg     Config
	steps   steps.Recorder     // nil except in tests
	node    uuid.UUID          // of the agent
	now     func() wire.Moment // the boot clock
	inner   tenure.Session
	trust   trust
	lost    chan struct{} // closed when the session is lost; cause is set before
	empty   chan struct{} // closed when it is lost and no node is connected
	done    chan struct{} // closed when serve has returned
	cause   error
	closed  chan struct{} // closed when the connection is
	closing sync.Once
	group   *sync.WaitGroup // the goroutines of the server

	mu sync.Mutex

	// Guarded by mu.
	connected       map[*client]struct{}
	clients         map[uuid.UUID]*client // the newest of each node
	incarnations    int64
	held            map[string]*holding
	reservations    map[string]reservation
	misses          map[string]miss
	changedAt       wire.Moment // of the last wake-up
	queue           []*job
	nextBeat        wire.Moment
	beatSoon        bool
	requestsPending bool
	leaving         bool
	wakePending     bool
	interrupt       context.CancelFunc // interrupts the current Wait
}

// holding is a role held by the agent's session for a node.
type holding struct {
	role   tenure.Role
	client *client
	term   int64 // 0 while the term is pending
}

// reservation keeps a role for a node of this host.
type reservation struct {
	node  uuid.UUID
	until wire.Moment
}

// job is a call in need of the session, or the end of a node.
type job struct {
	client *client
	call   wire.Call
	gone   tenure.EndReason // if set, the node is gone
	answer chan wire.Answer // has room for one
}

func newHost(cfg Config, node uuid.UUID, now func() wire.Moment, group *sync.WaitGroup) *host {
	return &host{
		cfg: cfg, node: node, now: now, trust: trust{now: now}, group: group, lost: make(chan struct{}), empty: make(chan struct{}), done: make(chan struct{}), closed: make(chan struct{}),
		connected: map[*client]struct{}{}, clients: map[uuid.UUID]*client{},
		held: map[string]*holding{}, reservations: map[string]reservation{}, misses: map[string]miss{},
	}
}

// step emits a step of the model of the agent, if there is a recorder.
func (h *host) step(s steps.Step) {
	if h.steps != nil {
		s.Node, s.Session = h.node.String(), cmp.Or(s.Session, h.inner.Incarnation())
		h.steps.Record(s)
	}
}

func (h *host) isLost() bool {
	return wakeup.Closed(h.lost)
}

// push queues a job, unless the session is lost.
func (h *host) push(j *job) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isLost() {
		return false
	}
	h.queue = append(h.queue, j)
	h.wakeLocked()
	return true
}

// wakeLocked makes serve choose its next job again.
func (h *host) wakeLocked() {
	h.wakePending = true
	if h.interrupt != nil {
		h.interrupt()
	}
}

// changedLocked wakes all nodes but one: roles may be vacant.
func (h *host) changedLocked(but *client) {
	clear(h.misses)
	h.changedAt = h.now()
	for _, c := range h.clients {
		if c != but {
			c.wakeLocked()
		}
	}
}

// loadLocked returns the load of all nodes together. Values too large for the database
// would end the heartbeats of all nodes.
func (h *host) loadLocked() (sum tenure.Load) {
	count := func(to *int, n int) { *to = min(*to+min(max(n, 0), math.MaxInt32), math.MaxInt32) }
	for _, c := range h.clients {
		count(&sum.Connections, c.load.Connections)
		count(&sum.Jobs, c.load.Jobs)
		count(&sum.InFlight, c.load.InFlight)
		sum.CPU, sum.Memory = max(sum.CPU, c.load.CPU), max(sum.Memory, c.load.Memory)
	}
	return sum
}

// rolesLocked returns the roles held for a node, in order.
func (h *host) rolesLocked(c *client) (roles []*holding) {
	for _, name := range slices.Sorted(maps.Keys(h.held)) {
		if h.held[name].client == c {
			roles = append(roles, h.held[name])
		}
	}
	return roles
}
