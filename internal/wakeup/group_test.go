package wakeup

import (
	"testing"
	"testing/synctest"
	"time"
)

// Goroutines may start while others wait: those wait for the next moment without any.
func TestGroupIsIdleWithoutGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		g.Wait()
		begun := time.Now()
		g.Go(func() {
			time.Sleep(time.Second)
			g.Go(func() { time.Sleep(time.Second) })
		})
		waited := g.Idle()
		if <-waited; time.Since(begun) != 2*time.Second {
			t.Errorf("idle after %v; want 2s", time.Since(begun))
		}
		g.Go(func() { time.Sleep(time.Second) })
		if Closed(g.Idle()) || !Closed(waited) {
			t.Error("idle while a goroutine runs, or the last wait is not over")
		}
		g.Wait()
	})
}
