package processor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
)

// debounce is the least time between two wakings by inserts: under load a batch
// then holds what came meanwhile.
const debounce = 20 * time.Millisecond

// listenPause is the time between attempts to listen for inserts. Until one
// succeeds, polling has to do.
const listenPause = 5 * time.Second

// Topic is the topic of [postgres.Backend.Channel] on which inserts into logs are
// told.
const Topic = "events"

// wake wakes the loops of a group.
type wake struct {
	channels []chan struct{}
}

func newWake(loops int) *wake {
	w := &wake{channels: make([]chan struct{}, loops)}
	for i := range w.channels {
		w.channels[i] = make(chan struct{}, 1)
	}
	return w
}

func (w *wake) all() {
	for _, channel := range w.channels {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}

// listen wakes the loops at news of the node, among them of changes by hand, and
// at inserts, until the context ends.
func (w *wake) listen(ctx context.Context, backend *postgres.Backend, node *tenure.Node, log *slog.Logger) {
	news, stop := node.News()
	defer stop()
	inserts := make(chan struct{}, 1)
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() {
		for ctx.Err() == nil {
			err := backend.ListenTo(ctx, Topic, func() {
				select {
				case inserts <- struct{}{}:
				default:
				}
			})
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
			w.all()
		case <-inserts:
			w.all()
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
