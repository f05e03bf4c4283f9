package console

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A parent that sends a signal twice requests a graceful end; a later second signal forces it.
func TestRepeatedSignalCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, stopped := make(chan os.Signal, 1), false
		ctx, cancel := untilSignal(signals, func() { stopped = true })
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
			if stopped != step.want {
				t.Errorf("%v after the last step: signals end the program is %t, want %t", step.wait, stopped, step.want)
			}
		}
	})
}
