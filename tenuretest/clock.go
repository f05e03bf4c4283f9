package tenuretest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// epoch is the first time of the wall clock, as in a synctest bubble.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Clock is a stopped clock until it is advanced. A database made by [NewDatabaseWithClock]
// and the nodes on it share one. It is safe for concurrent use.
type Clock struct {
	now       atomic.Int64 // nanoseconds since epoch
	advancing sync.Mutex   // one Advance at a time

	mu        sync.Mutex // taken after a database's mutex, never the other way round
	timers    []*timer   // by due, then by age
	running   int        // functions of timers
	changed   chan struct{}
	databases []*Database
}

var _ clocks.Clock = (*Clock)(nil)

// timer is one call of AfterFunc.
type timer struct {
	due time.Duration
	f   func()
}

// NewClock returns a clock at midnight UTC on the first of January 2000.
func NewClock() *Clock { return &Clock{changed: make(chan struct{})} }

// Now implements [clocks.Clock].
func (c *Clock) Now() clocks.Instant {
	now := c.mono()
	return clocks.Instant{Mono: now, Wall: epoch.Add(now)}
}

func (c *Clock) mono() time.Duration { return time.Duration(c.now.Load()) }

// AfterFunc implements [clocks.Clock]. If d is not positive, f is called
// immediately, on its own goroutine.
func (c *Clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= 0 {
		c.runLocked(f)
		return func() bool { return false }
	}
	t := &timer{due: c.mono() + d, f: f}
	later := slices.IndexFunc(c.timers, func(other *timer) bool { return other.due > t.due })
	if later < 0 {
		later = len(c.timers)
	}
	c.timers = slices.Insert(c.timers, later, t)
	return func() bool { return c.stop(t) }
}

func (c *Clock) stop(t *timer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.timers, t)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	return true
}

// Advance moves the clock forward by d, from timer to timer. After each it waits until the
// called functions have returned and the sessions of its databases have nothing left to do
// at this time. So heartbeats are sent when they are due, however far the clock moves. It
// panics if d is negative.
//
// It cannot wait for invisible work: a job returning after the end of its context, or a
// node about to open its next session. Wait for the result, on a channel or with a loop of
// small steps until it is there. Do not call Advance from a function called by a timer or
// a node.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("tenuretest: a clock cannot be moved back")
	}
	c.advancing.Lock()
	defer c.advancing.Unlock()
	end := c.mono() + d
	for c.settle(); c.fire(end); c.settle() {
		continue
	}
	c.now.Store(int64(end))
}

// fire moves the clock to the next timer due by end and calls its function. It reports
// false if there is none.
func (c *Clock) fire(end time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].due > end {
		return false
	}
	next := c.timers[0]
	c.timers = slices.Delete(c.timers, 0, 1)
	c.now.Store(int64(next.due))
	c.runLocked(next.f)
	return true
}

// runLocked calls f on its own goroutine.
func (c *Clock) runLocked(f func()) {
	c.running++
	c.recheckLocked()
	go func() { // settle waits for it
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.running--
			c.recheckLocked()
		}()
		f()
	}()
}

// settle waits until nothing is left to do at the present time.
func (c *Clock) settle() {
	for {
		c.mu.Lock()
		changed, databases := c.changed, c.databases
		settled := c.running == 0
		c.mu.Unlock()
		for _, d := range databases {
			settled = settled && d.settled()
		}
		select {
		case <-changed:
			continue // in the meantime: check again
		default:
		}
		if settled {
			return
		}
		<-changed
	}
}

// recheckLocked makes settle check again.
func (c *Clock) recheckLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// recheck makes settle check again after a session began to wait, or ended.
func (c *Clock) recheck() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recheckLocked()
}

// follow makes Advance wait for the sessions of a database.
func (c *Clock) follow(d *Database) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.databases = append(c.databases, d)
}
