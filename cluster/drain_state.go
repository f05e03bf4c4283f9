package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// drainState holds the state of the member's drains and of its shutdown. A
// member can drain and undrain any number of times.
type drainState struct {
	inFlight InFlight

	transition chan struct{} // a one-slot lock: held while a drain starts or is reversed

	serviceCtx context.Context // ends when the member begins to leave
	endService context.CancelCauseFunc

	mu           sync.Mutex
	drain        *drain // the current drain; nil unless the node drains
	releaseHooks []*releaseHook
	shutdown     *shutdown // the shutdown in progress, or nil
}

// releaseHook prepares the handover of roles; see [Member.beforeRelease].
type releaseHook struct {
	run func(context.Context) error
}

// drain is one drain of the node. A goroutine of the member performs it; it
// ends when the node is drained.
type drain struct {
	workDeadline time.Duration // deadline for work in flight, on the monotonic clock
	cancel       context.CancelFunc
	workEnded    chan struct{} // closed when the wait for work in flight ends
	done         chan struct{} // closed when the drain has ended
	err          error         // result; valid once done is closed
	target       uuid.UUID     // where roles are handed over, or uuid.Nil; guarded by drainState.mu
	by           atomic.Value  // latest requester, a string; not set if there is none
}

// shutdown is the member's graceful shutdown.
type shutdown struct {
	force    context.CancelCauseFunc
	finished chan struct{} // closed when the shutdown has ended
	err      error         // valid once finished is closed
}

func newDrainState() *drainState {
	d := &drainState{transition: make(chan struct{}, 1)}
	d.serviceCtx, d.endService = context.WithCancelCause(context.Background())
	return d
}

// recordRequestLocked records the target and the requester of a request.
func (d *drain) recordRequestLocked(request tenure.Request) {
	if request.Target != uuid.Nil {
		d.target = request.Target
	}
	if request.By != "" {
		d.by.Store(request.By)
	}
}

// requester returns the latest requester, or "" if the node drains on its own.
func (d *drain) requester() string {
	by, _ := d.by.Load().(string)
	return by
}

// leaving reports whether the member is leaving the cluster.
func (d *drainState) leaving() bool { return d.serviceCtx.Err() != nil }

// failed reports whether the drain has ended with an error.
func (d *drain) failed() bool {
	select {
	case <-d.done:
		return d.err != nil
	default:
		return false
	}
}

// lock acquires the lock. If it is free, lock succeeds even if ctx has ended;
// the drain then starts without a caller waiting for it.
func (d *drainState) lock(ctx context.Context) error {
	select {
	case d.transition <- struct{}{}:
		return nil
	default:
	}
	select {
	case d.transition <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *drainState) unlock() { <-d.transition }

// refuseWorkIfDrained makes a joining member refuse work if its node was drained before
// the member could receive the request: the node repeats it, maybe later.
func (d *drainState) refuseWorkIfDrained(ctx context.Context, node *tenure.Node) {
	if d.lock(ctx) != nil {
		return // a drain or its reversal is in progress, which decides
	}
	defer d.unlock()
	if node.Description().Status == Draining {
		d.inFlight.drain()
	}
}

// handOverTarget returns the requested target of the handover, or uuid.Nil.
func (d *drainState) handOverTarget(run *drain) uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return run.target
}

// cancelDrainLocked cancels the current drain, if there is one.
func (d *drainState) cancelDrainLocked() *drain {
	if d.drain != nil {
		d.drain.cancel()
	}
	return d.drain
}

// unlessLeaving calls do with d.mu held, unless the member is leaving.
func (d *drainState) unlessLeaving(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaving() {
		return false
	}
	do()
	return true
}

// beginShutdown returns the shutdown. The first call also gets the context for the
// shutdown.
func (d *drainState) beginShutdown() (s *shutdown, first bool, forced context.Context) {
	d.refuseWork()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shutdown == nil {
		first = true
		d.shutdown = &shutdown{finished: make(chan struct{})}
		forced, d.shutdown.force = context.WithCancelCause(context.Background())
	}
	return d.shutdown, first, forced
}

// refuseWork refuses new work permanently and closes the channel of Stopping.
func (d *drainState) refuseWork() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight.drain()
	d.endService(errLeaving)
}
