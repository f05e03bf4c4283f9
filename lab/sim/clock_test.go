package sim

import (
	"testing"
	"testing/synctest"
	"time"
)

// clockTest gives a test a process with its machine, and a way to act on it.
func clockTest(t *testing.T, test func(m *Machine, do func(func()))) {
	synctest.Test(t, func(*testing.T) {
		w := NewWorld(1, Network{})
		m := w.NewMachine()
		do := func(f func()) {
			w.mu.Lock()
			defer w.mu.Unlock()
			f()
		}
		do(func() { m.newProcess() })
		test(m, do)
		w.Close()
	})
}

// ringing sets an alarm and returns a function that reports whether it rang.
func ringing(m *Machine, d time.Duration) (rang, stop func() bool) {
	done := make(chan struct{})
	stop = m.clock.AfterFunc(d, func() { close(done) })
	return func() bool {
		synctest.Wait()
		select {
		case <-done:
			return true
		default:
			return false
		}
	}, stop
}

func TestTimersOfPausedProcessFireWhenItResumes(t *testing.T) {
	clockTest(t, func(m *Machine, do func(func())) {
		before := m.clock.Now()
		rang, _ := ringing(m, time.Second)
		do(m.process.pause)
		time.Sleep(3 * time.Second)
		if rang() {
			t.Error("a timer fired while the process stood still")
		}
		if passed := m.clock.Now().Mono - before.Mono; passed != 3*time.Second {
			t.Errorf("the clock of a paused process advanced by %v, want 3s", passed)
		}
		do(m.process.resume)
		time.Sleep(time.Millisecond)
		if !rang() {
			t.Error("an overdue timer did not fire when the process resumed")
		}
	})
}

func TestSuspensionStopsTheMonotonicClock(t *testing.T) {
	clockTest(t, func(m *Machine, do func(func())) {
		before := m.clock.Now()
		rang, _ := ringing(m, 2*time.Second)
		do(func() {
			m.process.pause()
			m.clock.suspend(false)
		})
		time.Sleep(10 * time.Second)
		do(m.process.resume)
		time.Sleep(time.Second)
		if rang() {
			t.Error("a timer fired although its time has not passed on the monotonic clock")
		}
		now := m.clock.Now()
		if mono, wall := now.Mono-before.Mono, now.Wall.Sub(before.Wall); mono != time.Second || wall != 11*time.Second {
			t.Errorf("monotonic %v, wall %v; want 1s and 11s", mono, wall)
		}
		time.Sleep(1001 * time.Millisecond)
		if !rang() {
			t.Error("the timer did not fire when its time had passed")
		}
	})
}

func TestTimersIgnoreStepsOfWallClock(t *testing.T) {
	clockTest(t, func(m *Machine, _ func(func())) {
		before := m.clock.Now()
		rang, _ := ringing(m, time.Second)
		m.clock.step(0, -time.Hour)
		time.Sleep(time.Second)
		now := m.clock.Now()
		if mono, wall := now.Mono-before.Mono, now.Wall.Sub(before.Wall); mono != time.Second || wall != time.Second-time.Hour {
			t.Errorf("monotonic %v, wall %v; want 1s and 1s less an hour", mono, wall)
		}
		if !rang() {
			t.Error("a timer follows the wall clock; it must follow the monotonic one")
		}
	})
}

func TestStoppedTimersDoNotFire(t *testing.T) {
	clockTest(t, func(m *Machine, _ func(func())) {
		rang, stop := ringing(m, time.Second)
		if !stop() {
			t.Error("stop before the time: false, want true")
		}
		time.Sleep(2 * time.Second)
		if rang() {
			t.Error("a stopped timer fired")
		}
		fired, stop := ringing(m, time.Second)
		time.Sleep(2 * time.Second)
		if !fired() || stop() {
			t.Error("stop after the time: true, want false")
		}
	})
}
