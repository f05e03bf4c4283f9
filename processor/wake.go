package processor

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres"
)

// After an insert, processors are woken immediately, and again only after a pause: later
// commits are read together. The pause grows with the number of processors, within these
// limits.
const (
	minDebounce     = 2 * time.Millisecond
	debouncePerLoop = time.Millisecond
	maxDebounce     = 20 * time.Millisecond
)

// listenPause is the time between attempts to listen for inserts. Until one
// succeeds, processors only poll.
const listenPause = 5 * time.Second

// Topic is the topic of the notifications of inserts into logs.
const Topic = "events"

// signals wake one loop.
type signals struct {
	changed  chan struct{} // an operator may have changed something
	inserted chan struct{} // events may have been inserted
}

// lastSignal is when the node was last notified.
type lastSignal struct{ at atomic.Pointer[time.Time] }

func (s *lastSignal) heard() {
	now := time.Now()
	s.at.Store(&now)
}

func (s *lastSignal) time() time.Time {
	if at := s.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// wake wakes the loops of a group.
type wake struct {
	loops   []signals
	bell    *doorbell.Bell
	rung    chan struct{} // has a buffer of one
	inserts lastSignal
	changes lastSignal // by operators
}

func newWake(loops int) *wake {
	w := &wake{loops: make([]signals, loops), rung: make(chan struct{}, 1)}
	w.bell = doorbell.New(w.debounce(), func() { wakeup.Send(w.rung) })
	for i := range w.loops {
		w.loops[i] = signals{make(chan struct{}, 1), make(chan struct{}, 1)}
	}
	return w
}

func (w *wake) debounce() time.Duration {
	return min(max(minDebounce, time.Duration(len(w.loops))*debouncePerLoop), maxDebounce)
}

func (w *wake) changed() {
	w.changes.heard()
	for _, l := range w.loops {
		wakeup.Send(l.changed)
	}
}

func (w *wake) inserted() {
	w.inserts.heard()
	for _, l := range w.loops {
		wakeup.Send(l.inserted)
	}
}

// listen wakes the loops after notifications of the node, such as changes by
// operators, and after inserts, until ctx ends.
func (w *wake) listen(ctx context.Context, backend *postgres.Backend, node *tenure.Node, log *slog.Logger) {
	wakeups, stop := node.Subscribe()
	defer stop()
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { // exits when ctx ends
		attend := func(ctx context.Context, _ func()) error { return schema.Of(backend).Attend(ctx, Topic, w.bell) }
		wakeup.Listen(ctx, clocks.System(), listenPause, attend, nil, func(err error) {
			log.Warn("listening for events failed; polling continues", "error", err)
		})
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-wakeups:
			w.changed()
		case <-w.rung:
			w.inserted()
			wakeup.Sleep(ctx, w.debounce())
		}
	}
}
