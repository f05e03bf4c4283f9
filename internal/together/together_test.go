package together

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSubtestsRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	var met sync.WaitGroup
	met.Add(atOnce)
	g := New(t)
	defer g.Wait()
	for i := range atOnce {
		g.Run(fmt.Sprint(i), func(*testing.T) {
			met.Done()
			met.Wait() // for all others
		})
	}
}

func TestNoMoreSubtestsRunThanPermitted(t *testing.T) {
	t.Parallel()
	var running, most, ran atomic.Int32
	g := New(t)
	for i := range 5 * atOnce {
		g.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(*testing.T) {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Hour)
				running.Add(-1)
				ran.Add(1)
			})
		})
	}
	g.Wait()
	if got := most.Load(); got > atOnce {
		t.Errorf("%d subtests ran at the same time; want at most %d", got, atOnce)
	}
	if got := ran.Load(); got != 5*atOnce {
		t.Errorf("%d subtests ran; want %d", got, 5*atOnce)
	}
}

// Wait returns after the cleanups of all subtests.
func TestWaitReturnsAfterAllSubtests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ended []string
	names := []string{"a", "b", "c"}
	g := New(t)
	for _, name := range names {
		g.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, name)
			})
		})
	}
	g.Wait()
	slices.Sort(ended)
	if !slices.Equal(ended, names) {
		t.Errorf("ended are %v; want %v", ended, names)
	}
}
