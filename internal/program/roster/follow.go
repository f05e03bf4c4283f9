package roster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// pause is the least time between two readings: one reading covers simultaneous changes.
const pause = 20 * time.Millisecond

// Follow reads the roster and passes it to fn: at the start, after every notification
// and, in case one is lost, at every interval. It ends with an error of fn. It ends
// without an error when ctx ends or when fn returns false. If the first read fails,
// Follow returns its error; later failures are logged.
func Follow(ctx context.Context, source Source, interval time.Duration, log *slog.Logger, fn func(*Roster) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	wake := make(chan struct{}, 1)
	if listener, ok := source.(tenure.Listener); ok {
		listening.Go(func() { // exits when ctx ends
			wakeup.Listen(ctx, clocks.System(), interval, listener.Listen, func() { wakeup.Send(wake) }, func(err error) {
				log.Warn("listening for notifications failed", "error", err)
			})
		})
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
		wakeup.Sleep(ctx, pause)
		wakeup.Await(ctx, interval, wake)
		if ctx.Err() != nil {
			return nil
		}
	}
}
