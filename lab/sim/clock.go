package sim

import (
	"sync"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// Clock is the time as one machine sees it. Its timers fire only while the
// machine's process runs.
type Clock struct {
	world   *World
	machine *Machine

	mu        sync.Mutex // taken after World.mu, never the other way round
	mono      time.Duration
	wall      time.Duration
	suspended bool
	asleep    time.Duration // World.now when the machine was suspended
	frozen    bool          // the wall clock stops too
	late      time.Duration // by which every timer is late: a defect, for tests
}

var _ clocks.Clock = (*Clock)(nil)

// Now implements clocks.Clock.
func (c *Clock) Now() clocks.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() clocks.Instant {
	now := c.world.now()
	mono, wall := now, now
	if c.suspended {
		mono = c.asleep
		if c.frozen {
			wall = c.asleep
		}
	}
	return clocks.Instant{Mono: mono + c.mono, Wall: c.world.start.Add(wall + c.wall)}
}

// AfterFunc implements clocks.Clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d += c.late
	t := &alarm{clock: c, due: c.now().Mono + d, f: f}
	t.arm(d)
	return t.stop
}

// step moves the clocks, as an operator or a time service does.
func (c *Clock) step(mono, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mono += mono
	c.wall += wall
}

// suspend stops the monotonic clock, as Linux does while a machine sleeps; if
// freeze, it stops the wall clock too, as a hypervisor can.
func (c *Clock) suspend(freeze bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended, c.frozen, c.asleep = true, freeze, c.world.now()
}

// awake ends a suspension, and reports whether there was one. The clocks that stood
// still do not catch up.
func (c *Clock) awake() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.suspended {
		return false
	}
	lost := c.world.now() - c.asleep
	c.mono -= lost
	if c.frozen {
		c.wall -= lost
	}
	c.suspended, c.frozen = false, false
	return true
}

// alarm is one call of AfterFunc. It is guarded by Clock.mu.
type alarm struct {
	clock *Clock
	due   time.Duration // on the monotonic clock
	f     func()
	timer *time.Timer
	done  bool // fired or stopped
}

func (t *alarm) arm(d time.Duration) {
	t.timer = time.AfterFunc(d, func() {
		if t.clock.world.do(t.rings) {
			t.f() // here: a goroutine for each of so many takes its time
		}
	})
}

// rings reports whether f is to be called now: not while the machine's process is
// stopped. Then it will be called when that runs again.
func (t *alarm) rings() bool {
	if p := t.clock.machine.process; p != nil && p.gate.resumed != nil {
		p.gate.pass(func() {
			if t.isDue() {
				go t.f()
			}
		})
		return false
	}
	return t.isDue()
}

// isDue reports whether the alarm has not been stopped and the monotonic clock, which
// may have stood still in the meantime, has reached its time. Otherwise it is armed
// again.
func (t *alarm) isDue() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.done {
		return false
	}
	if early := t.due - t.clock.now().Mono; early > 0 {
		t.arm(early)
		return false
	}
	t.done = true
	return true
}

func (t *alarm) stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.done {
		return false
	}
	t.done = true
	t.timer.Stop()
	return true
}
