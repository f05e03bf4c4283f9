package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// ErrNodeDied is returned if a node died before it completed a request. It
// matches tenure.ErrUnknownNode.
var ErrNodeDied = fmt.Errorf("%w: it died", tenure.ErrUnknownNode)

// followInterval is the longest time between two reads of a node's progress, in
// case a notification is lost.
const followInterval = 500 * time.Millisecond

// DrainOptions configures [DrainNode]. The zero value is ready to use.
type DrainOptions struct {
	// Force drains the node even if no other node is active.
	Force bool
	// Target, if set, is the node to hand roles over to. Default: the node's
	// ShutdownConfig decides.
	Target NodeID
	// By is the requester to record.
	By string
	// Progress, if set, is called once at the start and after every change.
	Progress func(DrainProgress)
}

// DrainProgress is the progress of a node's drain.
type DrainProgress struct {
	Status   NodeStatus
	Drained  bool
	Leads    int // number of roles
	InFlight int // units of work, as of the latest heartbeat
}

func (p DrainProgress) String() string {
	return fmt.Sprintf("its status is %s, it leads %d roles and has %d units of work in flight", p.Status, p.Leads, p.InFlight)
}

// DrainNode requests a drain of a node, on any machine of the cluster. It returns nil when
// the node is drained, with no work in flight, or has left. The caller need not be a
// member.
//
// The error matches tenure.ErrUnknownNode if the node or the target is not a live node,
// tenure.ErrLastNode if no other node would be active and Force is not set, [ErrNodeDied]
// if the node died, and tenure.ErrDrainCanceled if it was undrained. If ctx ends first,
// the error matches its cause and tenure.ErrShutdown and names the remaining roles and
// work; the node continues to drain.
func DrainNode(ctx context.Context, store Store, id NodeID, options DrainOptions) error {
	request := tenure.Request{
		Kind: tenure.RequestDrain, Node: id, Target: options.Target, Force: options.Force, By: options.By,
	}
	drains := false
	err := requestAndFollow(ctx, store, request, options.Progress, func(p DrainProgress) (bool, error) {
		if drains && p.Status.AcceptsWork() {
			return false, tenure.ErrDrainCanceled
		}
		drains = p.Status == Draining
		return drains && p.Drained && p.InFlight == 0, nil // earlier versions are drained with work in flight
	})
	if errors.Is(err, tenure.ErrLastNode) {
		return fmt.Errorf("drain %s: %w: add a node first, or use force", id, err)
	}
	if err != nil && !errors.Is(err, errLeft) {
		return fmt.Errorf("drain %s: %w", id, err)
	}
	return nil
}

// UndrainNode requests the end of a node's drain and returns when it has ended. by is the
// requester to record. UndrainNode returns the errors of [DrainNode]; if the node has
// left, the error matches tenure.ErrUnknownNode.
func UndrainNode(ctx context.Context, store Store, id NodeID, by string) error {
	request := tenure.Request{Kind: tenure.RequestUndrain, Node: id, By: by}
	err := requestAndFollow(ctx, store, request, nil, func(p DrainProgress) (bool, error) { return p.Status != Draining, nil })
	if err != nil {
		return fmt.Errorf("undrain %s: %w", id, err)
	}
	return nil
}

// errLeft is the result if the node left the cluster.
var errLeft = fmt.Errorf("%w: it has left", tenure.ErrUnknownNode)

// requestAndFollow records a request for a node, and reads the node's progress after every
// notification until arrived reports true. The end of the node's session ends its unread
// requests, so requestAndFollow records the request again in a new session.
func requestAndFollow(
	ctx context.Context, store Store, request tenure.Request, report func(DrainProgress), arrived func(DrainProgress) (bool, error),
) error {
	id := request.Node
	_, session, _ := readNode(ctx, store, id) // the request reports what is wrong
	if err := store.Request(ctx, request); err != nil {
		return err
	}
	wakeups := make(chan struct{}, 1)
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if listener, ok := store.(tenure.Listener); ok {
		listening.Go(func() {
			_ = listener.Listen(ctx, func() { wakeup.Send(wakeups) }) // if this fails, polling has to suffice
		})
	}
	var last DrainProgress
	for known := false; ; known = true {
		progress, incarnation, err := readProgress(ctx, store, id)
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
		drains := progress.Status == Draining
		if incarnation != session && drains != (request.Kind == tenure.RequestDrain) {
			if err := store.Request(ctx, request); err != nil {
				return err
			}
		}
		session = incarnation
		wakeup.AwaitOn(ctx, clocks.System(), followInterval, wakeups)
	}
}

// readProgress returns the progress of a node, and its incarnation.
func readProgress(ctx context.Context, store Store, id NodeID) (DrainProgress, int64, error) {
	node, incarnation, err := readNode(ctx, store, id)
	if err != nil {
		return DrainProgress{}, 0, err
	}
	leaders, err := store.Leaders(ctx)
	progress := DrainProgress{Status: node.Status, Drained: node.Drained, InFlight: node.InFlight}
	for _, leader := range leaders {
		if leader.NodeID == id {
			progress.Leads++
		}
	}
	return progress, incarnation, err
}

// readNode returns a live node and its incarnation.
func readNode(ctx context.Context, store Store, id NodeID) (NodeInfo, int64, error) {
	members, err := store.Members(ctx)
	if err != nil {
		return NodeInfo{}, 0, err
	}
	i := slices.IndexFunc(members, func(m tenure.Member) bool { return m.ID == id })
	if i < 0 {
		return NodeInfo{}, 0, errLeft
	}
	node := newNodeInfo(&members[i], nil)
	if node.Status == Dead {
		return NodeInfo{}, 0, ErrNodeDied
	}
	return node, members[i].Incarnation, nil
}
