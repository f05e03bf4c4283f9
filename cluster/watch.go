package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// ChangeKind says what a [Change] tells.
type ChangeKind string

// The kinds of changes.
const (
	Snapshot ChangeKind = "snapshot" // the nodes at the beginning
	Joined   ChangeKind = "joined"   // a node came, or began to match the filter
	Updated  ChangeKind = "updated"  // a node tells something else of itself
	Left     ChangeKind = "left"     // a node went, died, or ceased to match
)

// Change is a change among the nodes that a [Filter] chooses.
type Change struct {
	Kind ChangeKind
	// Node is the one that changed, as it is now; one that left without a trace,
	// as it was. It is zero in a Snapshot.
	Node NodeInfo
	// Nodes are those that the filter chooses after the change, in the order in
	// which they came. The slice belongs to the receiver; the labels and lists
	// in it must not be changed.
	Nodes []NodeInfo
}

// Watch tells of the nodes that a filter chooses: first a Snapshot, then every
// change, in order. A slow receiver gets changes merged, and never misses the
// last one. A loss of the session interrupts nothing: what changed meanwhile is
// told when there is a new one, and nothing twice. A change in the figures of
// the load alone is told at most once per check interval for each node. The
// channel is closed when the context ends or the member leaves.
func (m *Member) Watch(ctx context.Context, filter Filter) <-chan Change {
	changes := make(chan Change)
	begun := m.run(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(m.life, cancel)()
		newWatcher(m.view, filter).run(ctx, changes)
	})
	if !begun {
		close(changes)
	}
	return changes
}

// Watch is [Member.Watch] for programs that are no members. Of the node's
// configuration it uses CheckInterval, Logger and Clock. If the store is a
// tenure.Listener, changes are told as they happen, otherwise every
// CheckInterval. The channel is closed, and everything that Watch started has
// ended, when the context ends.
func Watch(ctx context.Context, store Store, config tenure.Config, filter Filter) <-chan Change {
	interval, clock, log := cmp.Or(config.CheckInterval, defaultInterval), config.Clock, config.Logger
	if clock == nil {
		clock = tenure.SystemClock()
	}
	if log == nil {
		log = slog.Default()
	}
	ask := func(ctx context.Context) ([]tenure.Member, error) {
		ctx, cancel := context.WithTimeout(ctx, max(interval, time.Second))
		defer cancel()
		return store.Members(ctx)
	}
	v := newView(ask, interval, clock, log)
	news, changes := make(chan struct{}, 1), make(chan Change)
	go func() { // ends with the context; its end closes the channel
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { v.follow(ctx, news) })
		if listener, ok := store.(tenure.Listener); ok {
			group.Go(func() { v.listen(ctx, listener, news) })
		}
		newWatcher(v, filter).run(ctx, changes)
	}()
	return changes
}

// listen passes a store's news on. While that does not work, reading every
// interval has to do.
func (v *view) listen(ctx context.Context, listener tenure.Listener, news chan<- struct{}) {
	for ctx.Err() == nil {
		err := listener.Listen(ctx, func() {
			select {
			case news <- struct{}{}:
			default:
			}
		})
		if ctx.Err() == nil {
			v.log.Warn("listening for news of nodes failed", "error", err)
		}
		wait(ctx, v.clock, v.interval, nil)
	}
}
