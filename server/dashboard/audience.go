package dashboard

import (
	"context"
	"sync"
	"time"
)

// attention is how long after the last request the watch reads for viewers without a
// stream.
const attention = 30 * time.Second

// audience is whether the dashboard has viewers. Without one the watch rests and reads
// nothing. It is safe for concurrent use.
type audience struct {
	streams func() int // that are open

	// Guarded by mu.
	mu     sync.Mutex
	last   time.Time     // of the requests
	rests  bool          // the watch does
	wanted chan struct{} // closed by a request while the watch rests
	fresh  chan struct{} // closed when the watch has read after its rest
}

// newAudience returns an audience that is present: the watch reads first.
func newAudience(streams func() int) *audience {
	return &audience{streams: streams, last: time.Now()}
}

// attend notes a request. If the watch rests, attend makes it read and waits, since the
// last viewer's state is old. It waits no longer than for the first read.
func (a *audience) attend(ctx context.Context) {
	a.mu.Lock()
	a.last = time.Now()
	if a.rests {
		a.rests = false
		close(a.wanted)
	}
	fresh := a.fresh
	a.mu.Unlock()
	if fresh == nil {
		return
	}
	limit := time.NewTimer(firstReadWait)
	defer limit.Stop()
	select {
	case <-fresh:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// rest returns immediately if there are viewers. Otherwise it waits for one, or for ctx
// to end, and returns true.
func (a *audience) rest(ctx context.Context) bool {
	a.mu.Lock()
	if a.streams() > 0 || time.Since(a.last) < attention {
		a.mu.Unlock()
		return false
	}
	a.rests, a.wanted = true, make(chan struct{})
	if a.fresh == nil {
		a.fresh = make(chan struct{})
	}
	wanted := a.wanted
	a.mu.Unlock()
	select {
	case <-wanted:
	case <-ctx.Done():
	}
	return true
}

// read notes a read of the watch.
func (a *audience) read() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fresh != nil && !a.rests {
		close(a.fresh)
		a.fresh = nil
	}
}
