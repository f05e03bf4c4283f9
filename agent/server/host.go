package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

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

// serve calls the session until it is lost or left.
func (h *host) serve() {
	defer close(h.done)
	for {
		work, pause := h.next()
		var err error
		switch {
		case work != nil:
			err = work()
		case pause > 0:
			err = h.wait(pause)
		}
		if err != nil {
			h.fail(err)
		}
		if h.isLost() {
			return
		}
	}
}

func (h *host) isLost() bool {
	return wakeup.Closed(h.lost)
}

// next returns the next thing to do, or how long to wait.
func (h *host) next() (work func() error, pause time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	nextExpiry := h.expireLocked(now)
	switch {
	case !h.trust.valid():
		return func() error { return tenure.ErrTrustExpired }, 0
	case now >= h.nextBeat:
		return h.heartbeat, 0
	case len(h.queue) > 0:
		jobs := h.takeLocked()
		return func() error { return h.process(jobs) }, 0
	case h.leaving && len(h.connected) == 0:
		return h.leave, 0
	case h.beatSoon:
		return h.heartbeat, 0
	case h.requestsPending:
		return h.readRequests, 0
	}
	return nil, max(time.Millisecond, min(h.nextBeat, nextExpiry).Sub(now))
}

// takeLocked returns the jobs of the next batch. It has at most wire.MaxRoles roles: a
// heartbeat never waits long.
func (h *host) takeLocked() []*job {
	roles, n := 0, 0
	for n < len(h.queue) {
		roles += len(h.queue[n].call.Acquire)
		if roles > wire.MaxRoles && n > 0 {
			break
		}
		n++
	}
	jobs := h.queue[:n:n]
	h.queue = h.queue[n:]
	return jobs
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

// wait waits for a change, for wakeLocked, or until d has passed.
func (h *host) wait(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	h.mu.Lock()
	if h.wakePending {
		h.wakePending = false
		h.mu.Unlock()
		return nil
	}
	h.interrupt = cancel
	h.mu.Unlock()
	changed, err := h.inner.Wait(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupt, h.wakePending = nil, false
	if changed {
		h.requestsPending = true
		h.changedLocked(nil)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", tenure.ErrSessionLost, err)
	}
	return nil
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

// heartbeat proves the session to be live. Trust counts from before it is sent.
func (h *host) heartbeat() error {
	h.mu.Lock()
	h.beatSoon = false
	load := h.loadLocked()
	h.mu.Unlock()
	sent := h.now()
	pending, err := h.inner.Heartbeat(load)
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	t := h.cfg.Timing
	if err == nil {
		h.step(steps.Step{Kind: steps.AgentGetsAnswer, Trust: sent.Add(t.Lease - t.Margin).Sub(h.now())})
	}
	if err == nil && !h.trust.extend(sent.Add(t.Lease-t.Margin)) {
		return tenure.ErrTrustExpired
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// Twice as often as a node: the trust of nodes counts from this heartbeat and
	// must last until their next ones.
	h.nextBeat = sent.Add(t.RefreshInterval / 2)
	if err != nil {
		h.nextBeat = h.now().Add(t.RefreshInterval / 10)
		h.cfg.Logger.Warn("heartbeat failed", "error", err, "trust_remaining", h.trust.remaining())
	}
	h.requestsPending = h.requestsPending || pending
	return nil
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
