package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/wakeup"
)

const markTimeout = 5 * time.Second

// HeartbeatLoop measures the load in a member's heartbeats and marks silent nodes dead.
// The node's session sends the heartbeats: one statement renews the lease, shows the node
// to be alive, and carries the load. [Join] starts the loop; see [Member.Heartbeat]. It is
// safe for concurrent use.
type HeartbeatLoop struct {
	node        *tenure.Node
	store       Store
	view        *view
	config      HeartbeatConfig
	programLoad func() tenure.Load // the program's own callback; may be nil
	inFlight    *InFlight

	mu       sync.Mutex
	figures  tenure.Load // set by UpdateLoad
	measured tenure.Load
	stop     context.CancelFunc // cancels the current run; nil if there is none
	stopped  chan struct{}      // closed when the current run has ended
}

// Heartbeat returns the member's heartbeat loop.
func (m *Member) Heartbeat() *HeartbeatLoop { return m.heartbeat }

// Run runs the loop until the context ends or [HeartbeatLoop.Stop] is called,
// and returns nil then. If the loop is already running, the error matches
// tenure.ErrAlreadyStarted. Without the loop, heartbeats continue with the
// latest load.
func (h *HeartbeatLoop) Run(ctx context.Context) error {
	run, err := h.begin(ctx)
	if err != nil {
		return err
	}
	run()
	return nil
}

// begin marks the loop as running. The caller must call run.
func (h *HeartbeatLoop) begin(ctx context.Context) (run func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil {
		return nil, fmt.Errorf("the heartbeat loop: %w", tenure.ErrAlreadyStarted)
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	h.stop, h.stopped = cancel, stopped
	return func() {
		h.loop(ctx)
		cancel()
		h.mu.Lock()
		h.stop = nil
		h.mu.Unlock()
		close(stopped)
	}, nil
}

func (h *HeartbeatLoop) loop(ctx context.Context) {
	meter, err := newMeter(os.DirFS("/"))
	switch {
	case err == nil:
	case runtime.GOOS == "linux":
		h.node.Logger().Warn("the load of this process cannot be measured", "error", err)
	default: // the load is the program's, if it reports any
		h.node.Logger().Debug("the load of a process is measured on Linux only", "error", err)
	}
	for {
		wakeup.AwaitOn(ctx, h.node.Clock(), h.config.Interval, nil)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			h.measure(meter)
		}
		if !h.config.SkipMarkingDead {
			h.markDead(ctx)
		}
	}
}

// Stop ends [HeartbeatLoop.Run] and returns when it has ended. If the loop does
// not run, Stop does nothing. The loop can run again.
func (h *HeartbeatLoop) Stop() {
	h.mu.Lock()
	stop, stopped := h.stop, h.stopped
	h.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
}

// IsRunning reports whether the loop runs.
func (h *HeartbeatLoop) IsRunning() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stop != nil
}

// UpdateLoad sets the load for the next heartbeats. The member measures the zero fields.
// Values from the program's own callback, the Load of tenure.Config, take precedence.
func (h *HeartbeatLoop) UpdateLoad(load tenure.Load) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.figures = load
}

// load returns the load for a heartbeat. It does not block.
func (h *HeartbeatLoop) load() tenure.Load {
	var load tenure.Load
	if h.programLoad != nil {
		load = h.programLoad()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	load.Connections = cmp.Or(load.Connections, h.figures.Connections)
	load.Jobs = cmp.Or(load.Jobs, h.figures.Jobs)
	load.InFlight = cmp.Or(load.InFlight, h.figures.InFlight, h.inFlight.Count())
	load.CPU = cmp.Or(load.CPU, h.figures.CPU, h.measured.CPU)
	load.Memory = cmp.Or(load.Memory, h.figures.Memory, h.measured.Memory)
	return load
}

func (h *HeartbeatLoop) measure(meter *meter) {
	cpu, memory, err := meter.measure()
	if err != nil {
		h.node.Logger().Debug("measuring the load failed", "error", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.measured = tenure.Load{CPU: cpu, Memory: memory}
}

// markDead marks silent nodes dead if neither the end of their session nor the expiry of
// their lease has revealed their death. Usually there is no such node: then it does not
// query the database.
func (h *HeartbeatLoop) markDead(ctx context.Context) {
	if h.view.longestSilence() <= h.config.DeadThreshold {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	dead, err := h.store.MarkDead(ctx, h.config.DeadThreshold)
	switch {
	case err != nil && ctx.Err() == nil:
		h.node.Logger().Warn("marking silent nodes as dead failed", "error", err)
	case len(dead) > 0:
		h.node.Logger().Info("silent nodes were marked as dead", "nodes", dead)
	}
}
