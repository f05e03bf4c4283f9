package assign

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/reach"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// debounce is the minimum time between two passes after notifications of rows:
// under load, one pass then handles many.
const debounce = 20 * time.Millisecond

// listenPause is the time between attempts to listen for rows. Until one
// succeeds, the loop only polls.
const listenPause = 5 * time.Second

// loop runs an assigner in one term.
type loop struct {
	pass
	wake   chan struct{} // something may have changed
	rung   chan struct{} // rows may have changed; has a buffer of one
	passed func(error)   // records the end of a pass
}

// run assigns rows until the term ends or is stopping. The error says why another node
// should lead.
func (l *loop) run(ctx context.Context) error {
	listen, stop := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	listening.Go(func() { l.listenToNodes(listen) })
	listening.Go(func() { l.listenToRows(listen) })
	watch := reach.Watch{Database: l.database}
	for !l.finished(ctx) {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, window(l.member.Node()))
		more, err := l.assign(limited)
		cancel()
		if ctx.Err() == nil {
			l.passed(err)
		}
		if err == nil {
			watch.Worked()
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.log.Warn("assigning rows failed", "error", err)
			l.tableKnown = false
			if err := watch.Failed(ctx, began); err != nil {
				return err
			}
			l.pause(ctx, min(l.config.PollInterval, defaultPollInterval), nil)
		case !more:
			l.bell.Looked(false)
			l.pause(ctx, l.config.PollInterval, l.wake)
		}
	}
	return nil
}

// finished reports whether the loop should return.
func (l *loop) finished(ctx context.Context) bool {
	return ctx.Err() != nil || wakeup.Closed(l.term.Stopping())
}

// pause waits for d, for a value, or until the term ends or is stopping.
func (l *loop) pause(ctx context.Context, d time.Duration, value <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-value:
	case <-l.term.Stopping():
	case <-ctx.Done():
	}
}

func (l *loop) wakeUp() {
	wakeup.Send(l.wake)
}

// listenToNodes wakes the loop after changes of the nodes, except of their load: it
// matters only if there are rows to assign.
func (l *loop) listenToNodes(ctx context.Context) {
	every := cluster.Filter{Statuses: []cluster.NodeStatus{cluster.Joining, cluster.Active, cluster.Draining, cluster.Dead}}
	seen := map[cluster.NodeID]cluster.NodeInfo{}
	for change := range l.member.Watch(ctx, every) {
		before, known := seen[change.Node.ID]
		if !known || change.Kind != cluster.Updated || !sameOffer(before, change.Node) {
			l.wakeUp()
		}
		seen[change.Node.ID] = change.Node
		if change.Kind == cluster.Left {
			delete(seen, change.Node.ID)
		}
	}
}

// sameOffer reports whether a node can get the same rows as before.
func sameOffer(before, now cluster.NodeInfo) bool {
	return before.Status == now.Status && before.Drained == now.Drained &&
		slices.Equal(before.Roles, now.Roles) && slices.Equal(before.Capabilities, now.Capabilities)
}

// listenToRows wakes the loop when rows may have changed.
func (l *loop) listenToRows(ctx context.Context) {
	var forwarding sync.WaitGroup
	defer forwarding.Wait()
	forwarding.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-l.rung:
				l.wakeUp()
				l.pause(ctx, debounce, nil)
			case <-ctx.Done():
			}
		}
	})
	attend := func(ctx context.Context, _ func()) error {
		return schema.Of(l.backend).Attend(ctx, l.config.topic(), l.bell)
	}
	wakeup.Listen(ctx, clocks.System(), listenPause, attend, nil, func(err error) {
		l.log.Warn("listening for rows failed; polling continues", "error", err)
	})
}

// window limits a pass, and how long its locks outlive this process if it is
// paused: the trust window.
func window(node *tenure.Node) time.Duration {
	timing := node.Timing()
	return timing.Lease - timing.Margin
}
