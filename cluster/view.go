package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// viewPause is the least time between two readings of the registry; it is longer
// where they take longer, so that no more than a third of the time is spent on
// them: many nodes that come or go at once are read together. It is never longer
// than the check interval, and a reading that failed does not prolong it: one
// that stalled with the database says nothing about the next.
const (
	viewPause   = 2 * time.Millisecond
	pauseFactor = 2
)

// view is what is known of the registry: read again at all news, and every
// check interval in case news is lost. It is safe for concurrent use.
type view struct {
	ask      func(context.Context) ([]tenure.Member, error)
	interval time.Duration
	clock    tenure.Clock
	log      *slog.Logger

	mu      sync.Mutex
	seen    []tenure.Member // replaced, never changed
	nodes   []NodeInfo      // the same, once somebody has asked
	silence time.Duration   // the longest of a node that nobody has marked as dead
	readAt  time.Duration   // when the reading began, on the monotonic clock
	reading uint64          // counts the readings
	changed chan struct{}   // closed at the next reading
	failure error           // of the last attempt to read, if it failed
}

func newView(ask func(context.Context) ([]tenure.Member, error), interval time.Duration, clock tenure.Clock, log *slog.Logger) *view {
	return &view{ask: ask, interval: interval, clock: clock, log: log, changed: make(chan struct{})}
}

// members returns what was read last and a channel that is closed when more is.
func (v *view) members() ([]tenure.Member, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen, v.changed
}

// snapshot is members as [NodeInfo], with the time of the reading and whether
// there was one.
func (v *view) snapshot() (nodes []NodeInfo, readAt time.Duration, read bool, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodes == nil {
		v.nodes = newNodeInfos(v.seen)
	}
	return v.nodes, v.readAt, v.reading > 0, v.changed
}

// longestSilence returns for how long, at the last reading, a node was silent
// that is dead without being marked so; 0 if there is none.
func (v *view) longestSilence() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.silence
}

// read reads the registry once.
func (v *view) read(ctx context.Context) error {
	begun := v.clock.Now().Mono
	members, err := v.ask(ctx)
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
	v.seen, v.nodes, v.readAt = members, nil, begun
	v.reading++
	close(v.changed)
	v.changed = make(chan struct{})
	return nil
}

// unmarked reports whether a node is dead although the registry does not say
// so: it was silent for longer than its lease.
func unmarked(m tenure.Member) bool {
	return m.Status != tenure.StatusDead && m.SilentFor > m.Lease
}

// follow reads the registry again and again until the context ends.
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
