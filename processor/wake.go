package processor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// An insert wakes at once, and the next one only after a while: what was
// committed meanwhile is read together. So much at least, and so much more for
// each processor that would read, but not more than makes a difference to
// people.
const (
	leastDebounce = 2 * time.Millisecond
	debounceEach  = time.Millisecond
	mostDebounce  = 20 * time.Millisecond
)

// listenPause is the time between attempts to listen for inserts. Until one
// succeeds, polling has to do.
const listenPause = 5 * time.Second

// Topic is the topic of [postgres.Backend.Channel] on which inserts into logs are
// told.
const Topic = "events"

// signals wake one loop.
type signals struct {
	changed  chan struct{} // somebody may have changed something
	inserted chan struct{} // something may have been inserted
}

// wake wakes the loops of a group.
type wake struct {
	loops []signals
}

func newWake(loops int) *wake {
	w := &wake{loops: make([]signals, loops)}
	for i := range w.loops {
		w.loops[i] = signals{make(chan struct{}, 1), make(chan struct{}, 1)}
	}
	return w
}

func (w *wake) changed() {
	for _, l := range w.loops {
		signal(l.changed)
	}
}

func (w *wake) inserted() {
	for _, l := range w.loops {
		signal(l.inserted)
	}
}

func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// listen wakes the loops at news of the node, among them of changes by hand, and
// at inserts, until the context ends.
func (w *wake) listen(ctx context.Context, backend *postgres.Backend, node *tenure.Node, log *slog.Logger) {
	news, stop := node.Subscribe()
	defer stop()
	inserts := make(chan struct{}, 1)
	debounce := min(max(leastDebounce, time.Duration(len(w.loops))*debounceEach), mostDebounce)
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() {
		for ctx.Err() == nil {
			err := backend.ListenTo(ctx, Topic, func() { signal(inserts) })
			if err != nil {
				log.Warn("listening for events failed; polling goes on", "error", err)
			}
			sleep(ctx, listenPause)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			w.changed()
		case <-inserts:
			w.inserted()
			sleep(ctx, debounce)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
