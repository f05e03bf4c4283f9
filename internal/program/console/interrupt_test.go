package console

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A parent that sends a signal twice within 250 ms requests a graceful end. A later second
// signal forces it.
func TestRepeatedSignalCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		var stopped atomic.Bool
		ctx, cancel := untilSignal(signals, func() { stopped.Store(true) })
		defer cancel()
		signals <- syscall.SIGTERM
		<-ctx.Done()
		first := time.Now()
		if got := InterruptedBy(ctx); got != syscall.SIGTERM {
			t.Errorf("the context ended by %v, want %v", got, syscall.SIGTERM)
		}
		for _, step := range []struct {
			wait time.Duration
			want bool
		}{{0, false}, {249 * time.Millisecond, false}, {time.Millisecond, true}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if stopped.Load() != step.want {
				t.Errorf("%v after the signal, another one ends the program: %t, want %t (from 250ms on)", time.Since(first), stopped.Load(), step.want)
			}
		}
	})
}
