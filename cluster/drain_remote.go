package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// ErrNodeDied says that the node died before it had done what it was asked to. It
// matches tenure.ErrUnknownNode.
var ErrNodeDied = fmt.Errorf("%w: it died", tenure.ErrUnknownNode)

// followInterval is how often the database is asked how far a node is, in case
// news is lost.
const followInterval = 500 * time.Millisecond

// DrainOptions says how a node is drained from elsewhere. The zero value is
// ready to use.
type DrainOptions struct {
	// Force drains the node even if no other one is in service.
	Force bool
	// Target, if set, is the node to lead next. Default what the node's
	// ShutdownConfig says.
	Target NodeID
	// By is who asks, for the record.
	By string
	// Progress, if set, is called at first and whenever something has changed.
	Progress func(DrainProgress)
}

// DrainProgress is how far a node is.
type DrainProgress struct {
	Status   NodeStatus
	Drained  bool
	Leads    int // roles
	InFlight int // pieces of work, as of its last heartbeat
}

func (p DrainProgress) String() string {
	return fmt.Sprintf("its status is %s, it leads %d roles and has %d pieces of work in flight", p.Status, p.Leads, p.InFlight)
}

// DrainNode asks a node of the cluster, on whatever machine, to drain, follows
// how it does, and returns nil when it is drained or has left. It needs no
// member.
//
// The error matches tenure.ErrUnknownNode if the node or the target is not a
// living node, tenure.ErrLastNode if no other node would be in service and Force
// is not set, [ErrNodeDied] if the node died meanwhile, and tenure.ErrDrainCanceled if it
// was taken back. If the context ends first, the error matches its cause and
// tenure.ErrShutdown and says what is left; the node goes on draining.
func DrainNode(ctx context.Context, store Store, id NodeID, options DrainOptions) error {
	err := store.Request(ctx, tenure.Request{
		Kind: tenure.RequestDrain, Node: id.UUID(), Target: options.Target.UUID(), Force: options.Force, By: options.By,
	})
	if errors.Is(err, tenure.ErrLastNode) {
		return fmt.Errorf("draining %s: %w: add a node first, or force it", id, err)
	}
	if err != nil {
		return fmt.Errorf("draining %s: %w", id, err)
	}
	drains := false
	err = follow(ctx, store, id, options.Progress, func(p DrainProgress) (bool, error) {
		if drains && p.Status.AcceptsWork() {
			return false, tenure.ErrDrainCanceled
		}
		drains = p.Status == Draining
		return drains && p.Drained, nil
	})
	if err != nil && !errors.Is(err, errLeft) {
		return fmt.Errorf("draining %s: %w", id, err)
	}
	return nil
}

// UndrainNode asks a node to come back into service and returns when it has. by
// is who asks, for the record. Errors are those of [DrainNode]; a node that left
// matches tenure.ErrUnknownNode.
func UndrainNode(ctx context.Context, store Store, id NodeID, by string) error {
	err := store.Request(ctx, tenure.Request{Kind: tenure.RequestUndrain, Node: id.UUID(), By: by})
	if err == nil {
		err = follow(ctx, store, id, nil, func(p DrainProgress) (bool, error) { return p.Status != Draining, nil })
	}
	if err != nil {
		return fmt.Errorf("undraining %s: %w", id, err)
	}
	return nil
}

// errLeft is the end of a node that left by itself.
var errLeft = fmt.Errorf("%w: it has left", tenure.ErrUnknownNode)

// follow asks how far a node is, at all news, until it has arrived.
func follow(
	ctx context.Context, store Store, id NodeID, report func(DrainProgress), arrived func(DrainProgress) (bool, error),
) error {
	news := make(chan struct{}, 1)
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if listener, ok := store.(tenure.Listener); ok {
		listening.Go(func() {
			_ = listener.Listen(ctx, func() { // without it, every interval has to do
				select {
				case news <- struct{}{}:
				default:
				}
			})
		})
	}
	var last DrainProgress
	for known := false; ; known = true {
		progress, err := readProgress(ctx, store, id)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %v: %w", tenure.ErrShutdown, last, context.Cause(ctx))
		case err != nil:
			return err
		}
		if report != nil && (!known || progress != last) {
			report(progress)
		}
		last = progress
		if done, err := arrived(progress); done || err != nil {
			return err
		}
		wait(ctx, tenure.SystemClock(), followInterval, news)
	}
}

func readProgress(ctx context.Context, store Store, id NodeID) (DrainProgress, error) {
	node, err := NewRegistry(store).Node(ctx, id)
	switch {
	case errors.Is(err, tenure.ErrUnknownNode):
		return DrainProgress{}, errLeft
	case err != nil:
		return DrainProgress{}, err
	case node.Status == Dead:
		return DrainProgress{}, ErrNodeDied
	}
	leaders, err := store.Leaders(ctx)
	progress := DrainProgress{Status: node.Status, Drained: node.Drained, InFlight: node.InFlight}
	for _, leader := range leaders {
		if leader.NodeID == id.UUID() {
			progress.Leads++
		}
	}
	return progress, err
}
