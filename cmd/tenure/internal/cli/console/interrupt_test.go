package console

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A parent that sends a signal twice requests a graceful end; a later second signal forces it.
func TestRepeatedSignalCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		var stopped atomic.Bool
		ctx, cancel := untilSignal(signals, func() { stopped.Store(true) })
		defer cancel()
		signals <- syscall.SIGTERM
		<-ctx.Done()
		if got := InterruptedBy(ctx); got != syscall.SIGTERM {
			t.Errorf("the context ended by %v, want %v", got, syscall.SIGTERM)
		}
		for _, step := range []struct {
			wait time.Duration
			want bool
		}{{0, false}, {repetition - 1, false}, {1, true}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if stopped.Load() != step.want {
				t.Errorf("%v after the last step: signals end the program is %t, want %t", step.wait, stopped.Load(), step.want)
			}
		}
	})
}
