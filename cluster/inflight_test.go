package cluster

import (
	"sync"
	"sync/atomic"
	"testing"
)

func ended(idle <-chan struct{}) bool {
	select {
	case <-idle:
		return true
	default:
		return false
	}
}

func TestInFlightDrains(t *testing.T) {
	var f InFlight
	first, ok := f.Enter()
	if !ok {
		t.Fatal("work was refused before the drain")
	}
	second, _ := f.Enter()
	if f.Count() != 2 {
		t.Errorf("count = %d; want 2", f.Count())
	}
	idle := f.drain()
	if _, ok := f.Enter(); ok || f.Count() != 2 {
		t.Errorf("while draining: entered %v, count %d; want refused, 2", ok, f.Count())
	}
	first.Done()
	first.Done()
	if ended(idle) || f.Count() != 1 {
		t.Errorf("after two calls of one Done: idle %v, count %d; want false, 1", ended(idle), f.Count())
	}
	second.Done()
	if !ended(idle) || f.Count() != 0 {
		t.Errorf("after the last Done: idle %v, count %d; want true, 0", ended(idle), f.Count())
	}
	if again := f.drain(); !ended(again) {
		t.Error("a second drain is not idle immediately")
	}
}

func TestInFlightReopens(t *testing.T) {
	var f InFlight
	guard, _ := f.Enter()
	interrupted := f.drain()
	f.reopen()
	f.reopen() // is open
	late, ok := f.Enter()
	if !ok {
		t.Fatal("work is refused after the drain")
	}
	guard.Done()
	late.Done()
	if ended(interrupted) {
		t.Error("the interrupted drain became idle")
	}
	if idle := f.drain(); !ended(idle) {
		t.Error("nothing is in flight and the drain waits")
	}
}

func TestRefusedGuardCountsNothing(t *testing.T) {
	var f InFlight
	f.drain()
	guard, _ := f.Enter()
	guard.Done()
	if f.Count() != 0 || !f.Draining() {
		t.Errorf("count %d, draining %v; want 0, true", f.Count(), f.Draining())
	}
}

func TestCopiedGuardPanics(t *testing.T) {
	var f InFlight
	guard, _ := f.Enter()
	twin := Guard{flight: guard.flight}
	guard.Done()
	defer func() {
		if recover() == nil {
			t.Error("a Done too many did not panic")
		}
		if f.Count() != 0 {
			t.Errorf("count = %d after the panic; want 0", f.Count())
		}
	}()
	twin.Done()
}

// However entering, ending, draining and reopening meet: when a drain is idle,
// nothing is in flight, and nothing enters until the drain is over.
func TestInFlightIsEmptyWhenIdle(t *testing.T) {
	var (
		f      InFlight
		active atomic.Int64
		stop   atomic.Bool
		all    sync.WaitGroup
	)
	for range 4 {
		all.Go(func() {
			for !stop.Load() {
				guard, ok := f.Enter()
				if !ok {
					continue
				}
				active.Add(1)
				active.Add(-1)
				guard.Done()
			}
		})
	}
	for range 2000 {
		<-f.drain()
		if n, count := active.Load(), f.Count(); n != 0 || count != 0 {
			t.Errorf("idle with %d at work, count %d", n, count)
			break
		}
		f.reopen()
	}
	stop.Store(true)
	all.Wait()
	if f.Count() != 0 {
		t.Errorf("count = %d at the end; want 0", f.Count())
	}
}

func TestEnterDoesNotAllocate(t *testing.T) {
	var f InFlight
	if n := testing.AllocsPerRun(100, func() {
		if guard, ok := f.Enter(); ok {
			guard.Done()
		}
	}); n != 0 {
		t.Errorf("%v allocations for each piece of work; want 0", n)
	}
}

func BenchmarkInFlight(b *testing.B) {
	var f InFlight
	b.ReportAllocs()
	for b.Loop() {
		guard, _ := f.Enter()
		guard.Done()
	}
}

func BenchmarkInFlightParallel(b *testing.B) {
	var f InFlight
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			guard, _ := f.Enter()
			guard.Done()
		}
	})
}
