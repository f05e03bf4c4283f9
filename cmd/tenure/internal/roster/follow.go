package roster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// pause is the least time between two readings: changes that come together are
// read together.
const pause = 20 * time.Millisecond

// Follow reads the roster and passes it to fn, again after every notification and, in
// case one is lost, at every interval. It ends when ctx ends, which is no error, or when
// fn returns false or an error. If the first read fails, Follow returns its error; later
// failures are logged.
func Follow(ctx context.Context, source Source, interval time.Duration, log *slog.Logger, fn func(*Roster) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	news := make(chan struct{}, 1)
	if listener, ok := source.(tenure.Listener); ok {
		listening.Go(func() { listen(ctx, listener, interval, log, news) })
	}
	for first := true; ; first = false {
		roster, err := ReadAll(ctx, source)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			log.Warn("reading the registry of nodes failed", "error", err)
		default:
			if more, err := fn(roster); err != nil || !more {
				return err
			}
		}
		if !wait(ctx, pause, nil) || !wait(ctx, interval, news) {
			return nil
		}
	}
}

// listen forwards notifications until the context ends.
func listen(ctx context.Context, listener tenure.Listener, interval time.Duration, log *slog.Logger, news chan<- struct{}) {
	for {
		err := listener.Listen(ctx, func() {
			wakeup.Send(news)
		})
		if err != nil && ctx.Err() == nil {
			log.Warn("listening for notifications failed", "error", err)
		}
		if !wait(ctx, interval, nil) {
			return
		}
	}
}

// wait waits for a time, or for a notification. It returns false if the context ends.
func wait(ctx context.Context, d time.Duration, news <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-news:
		return true
	case <-ctx.Done():
		return false
	}
}
