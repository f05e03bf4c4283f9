package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of changes.
const (
	Snapshot ChangeKind = "snapshot" // the nodes at the start
	Joined   ChangeKind = "joined"   // a node joined, or began to match the filter
	Updated  ChangeKind = "updated"  // a node's description or status changed, or with Filter.Load its load
	Left     ChangeKind = "left"     // a node left, died, or no longer matches
)

// Change is a change to the nodes selected by a [Filter].
type Change struct {
	Kind ChangeKind
	// Node is the changed node, in its new state, or in its last known state if it has
	// left the registry. It is zero in a Snapshot.
	Node NodeInfo
	// Nodes are the selected nodes after the change, in the order of their
	// start. The receiver owns the slice but must not modify the maps and
	// slices in it.
	Nodes []NodeInfo
}

// Watch reports the nodes selected by a filter: first a Snapshot, then every change, in
// order. A slow receiver gets merged changes and never misses the last one. A lost session
// does not end the watch: changes in between are reported once there is a new session, and
// only once. Changes of the load alone are reported only with Filter.Load. The channel is
// closed when ctx ends or the member leaves.
func (m *Member) Watch(ctx context.Context, filter Filter) <-chan Change {
	changes := make(chan Change)
	begun := m.run(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(m.ctx, cancel)()
		if filter.Load {
			defer m.view.poll()()
		}
		newWatcher(m.view, filter).run(ctx, changes)
	})
	if !begun {
		close(changes)
	}
	return changes
}

// Watch is like [Member.Watch] for programs other than members. It uses CheckInterval,
// Logger and Clock of the node's configuration. It reads the registry every CheckInterval
// and, if the store is a tenure.Listener, also when something changes. When ctx ends, the
// channel is closed after every goroutine of Watch has ended.
func Watch(ctx context.Context, store Store, config tenure.Config, filter Filter) <-chan Change {
	interval, ticks, log := cmp.Or(config.CheckInterval, defaultInterval), config.Clock, config.Logger
	if ticks == nil {
		ticks = clocks.System()
	}
	if log == nil {
		log = slog.Default()
	}
	ask := func(ctx context.Context) ([]tenure.Member, error) {
		ctx, cancel := context.WithTimeout(ctx, max(interval, time.Second))
		defer cancel()
		return store.Members(ctx)
	}
	v := newView(ask, interval, ticks, log)
	wakeups, changes := make(chan struct{}, 1), make(chan Change)
	go func() { // exits when ctx ends, then closes the channel
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { v.follow(ctx, wakeups) })
		if listener, ok := store.(tenure.Listener); ok {
			group.Go(func() { v.listen(ctx, listener, wakeups) })
		}
		newWatcher(v, filter).run(ctx, changes)
	}()
	return changes
}

// listen forwards the store's notifications. While the listener fails, polling has to
// suffice.
func (v *view) listen(ctx context.Context, listener tenure.Listener, wakeups chan<- struct{}) {
	wakeup.Listen(ctx, v.clock, v.interval, listener.Listen, func() { wakeup.Send(wakeups) }, func(err error) {
		v.log.Warn("listening for changes of nodes failed", "error", err)
	})
}
