package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// viewPause is the least time between two readings of the registry: many nodes
// that come or go at once are read together.
const viewPause = 10 * time.Millisecond

// view is what a member knows of the registry: read again at all news, and
// every check interval in case news is lost. It is safe for concurrent use.
type view struct {
	node *tenure.Node

	mu      sync.Mutex
	seen    []tenure.Member // replaced, never changed
	reading uint64          // counts the readings
	changed chan struct{}   // closed at the next reading
	failure error           // of the last attempt to read, if it failed
}

func newView(node *tenure.Node) *view {
	return &view{node: node, changed: make(chan struct{})}
}

// members returns what was read last and a channel that is closed when more is.
func (v *view) members() ([]tenure.Member, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen, v.changed
}

// read reads the registry once.
func (v *view) read(ctx context.Context) error {
	members, err := v.node.Members(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failure = err
	if err != nil {
		return err
	}
	for i := range members {
		if m := &members[i]; m.SilentFor > m.Lease {
			m.Status = tenure.StatusDead // nobody has marked it yet
		}
	}
	v.seen = members
	v.reading++
	close(v.changed)
	v.changed = make(chan struct{})
	return nil
}

// follow reads the registry again and again until the context ends.
func (v *view) follow(ctx context.Context) {
	news, stop := v.node.News()
	defer stop()
	clock, interval := v.node.Clock(), v.node.Timing().CheckInterval
	for ctx.Err() == nil {
		if err := v.read(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, tenure.ErrSessionLost) {
			v.node.Logger().Warn("reading the registry of nodes failed", "error", err)
		}
		wait(ctx, clock, viewPause, nil)
		wait(ctx, clock, interval-viewPause, news)
	}
}

// wait waits for d, for the end of the context, or for a value.
func wait(ctx context.Context, clock tenure.Clock, d time.Duration, value <-chan struct{}) {
	passed := make(chan struct{})
	defer clock.AfterFunc(d, func() { close(passed) })()
	select {
	case <-value:
	case <-passed:
	case <-ctx.Done():
	}
}
