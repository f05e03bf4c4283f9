package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// viewPause is the minimum time between two reads of the registry. If reads
// take long, the pause is longer, up to the check interval, so that they take
// at most a third of the time and each covers many changes. A failed read
// does not extend the pause: its duration says nothing about the next read.
const (
	viewPause   = 2 * time.Millisecond
	pauseFactor = 2
)

// view caches the registry. It is read again after every notification, and
// every check interval in case a notification is lost. It is safe for
// concurrent use.
type view struct {
	query    func(context.Context) ([]tenure.Member, error)
	interval time.Duration
	clock    clocks.Clock
	log      *slog.Logger

	mu      sync.Mutex
	cached  []tenure.Member // replaced, never modified
	nodes   []NodeInfo      // the same as NodeInfo, converted on first use
	silence time.Duration   // the longest silence of a dead node that is not marked dead
	readAt  time.Duration   // when the read began, on the monotonic clock
	reads   uint64          // counts the reads
	changed chan struct{}   // closed at the next read
	failure error           // of the last read, if it failed
}

func newView(ask func(context.Context) ([]tenure.Member, error), interval time.Duration, clock clocks.Clock, log *slog.Logger) *view {
	return &view{query: ask, interval: interval, clock: clock, log: log, changed: make(chan struct{})}
}

// members returns the cached members and a channel that is closed at the next
// read.
func (v *view) members() ([]tenure.Member, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cached, v.changed
}

// snapshot returns the members as [NodeInfo], the time of the read, whether
// there was one, and a channel that is closed at the next read.
func (v *view) snapshot() (nodes []NodeInfo, readAt time.Duration, read bool, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodes == nil {
		v.nodes = newNodeInfos(v.cached)
	}
	return v.nodes, v.readAt, v.reads > 0, v.changed
}

// longestSilence returns the longest silence, at the last read, of a dead node
// that is not marked dead, or 0.
func (v *view) longestSilence() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.silence
}

// read reads the registry once.
func (v *view) read(ctx context.Context) error {
	begun := v.clock.Now().Mono
	members, err := v.query(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failure = err
	if err != nil {
		return err
	}
	v.silence = 0
	for i := range members {
		if m := &members[i]; unmarked(*m) {
			v.silence = max(v.silence, m.SilentFor)
			m.Status, m.StatusBy = tenure.StatusDead, ""
		}
	}
	v.cached, v.nodes, v.readAt = members, nil, begun
	v.reads++
	close(v.changed)
	v.changed = make(chan struct{})
	return nil
}

// unmarked reports whether a node is dead although the registry does not say
// so: it has been silent for longer than its lease.
func unmarked(m tenure.Member) bool {
	return m.Status != tenure.StatusDead && m.SilentFor > m.Lease
}

// follow reads the registry repeatedly until ctx ends.
func (v *view) follow(ctx context.Context, news <-chan struct{}) {
	for ctx.Err() == nil {
		begun := v.clock.Now().Mono
		err := v.read(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, tenure.ErrSessionLost) {
			v.log.Warn("reading the registry of nodes failed", "error", err)
		}
		pause := viewPause
		if err == nil {
			pause = max(pause, min(pauseFactor*(v.clock.Now().Mono-begun), v.interval))
		}
		wait(ctx, v.clock, pause, nil)
		wait(ctx, v.clock, max(v.interval-pause, viewPause), news)
	}
}

// wait waits for d, for the end of ctx, or for a value.
func wait(ctx context.Context, clock clocks.Clock, d time.Duration, value <-chan struct{}) {
	passed := make(chan struct{})
	defer clock.AfterFunc(d, func() { close(passed) })()
	select {
	case <-value:
	case <-passed:
	case <-ctx.Done():
	}
}
