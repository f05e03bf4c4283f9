package acceptance_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/steplog"
)

// checker looks once a millisecond at all nodes of a test and holds them to
// Invariant 1, one leader, and Invariant 2, terms grow; and that the context of
// a term has ended before the next term begins.
type checker struct {
	t     *testing.T
	steps *steplog.History // of the installation
	stop  chan struct{}
	done  chan struct{}

	ended sync.Once

	mu      sync.Mutex
	members []*member
	known   []*tenure.Term // every term that was seen, in its order
	excused bool           // terms may overlap: see tolerate
	overlap time.Duration  // the longest that was seen
	both    time.Time      // since when two nodes have been leading
}

func newChecker(t *testing.T) *checker {
	c := &checker{t: t, steps: steplog.New(t), stop: make(chan struct{}), done: make(chan struct{})}
	go c.run()
	t.Cleanup(c.end)
	return c
}

// end ends the checks. It is idempotent.
func (c *checker) end() {
	c.steps.End()
	c.ended.Do(func() { close(c.stop) })
	<-c.done
}

func (c *checker) add(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, m)
}

// remove forgets a node that has closed; the terms it held are remembered.
func (c *checker) remove(gone *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == gone })
}

// tolerate makes the checker measure overlaps instead of reporting them, and
// returns a function that ends this.
func (c *checker) tolerate() (measured func() time.Duration) {
	over := c.steps.Excuse()
	c.set(true)
	return func() time.Duration {
		c.set(false)
		over()
		c.mu.Lock()
		defer c.mu.Unlock()
		longest := c.overlap
		c.overlap = 0
		return longest
	}
}

func (c *checker) set(excused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.excused, c.both = excused, time.Time{}
}

// terms returns the terms that were seen, in their order.
func (c *checker) terms() []*tenure.Term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*tenure.Term(nil), c.known...)
}

func (c *checker) run() {
	defer close(c.done)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.checkTerms()
		case <-c.stop:
			return
		}
	}
}

func (c *checker) checkTerms() {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := make([]*tenure.Term, len(c.members))
	for i, m := range c.members {
		first[i] = m.election.Term()
	}
	// A round does not read all terms at one instant. Trust that has ended is never
	// revived, so two terms that are valid before and after were both trusted in
	// between.
	leading := 0
	for i, m := range c.members {
		if first[i] != nil && first[i] == m.election.Term() {
			leading++
		}
	}
	c.count(leading)
	for _, term := range first {
		if term != nil {
			c.see(term)
		}
	}
}

// count takes note of how many nodes lead now.
func (c *checker) count(leading int) {
	if leading < 2 {
		c.both = time.Time{}
		return
	}
	if c.both.IsZero() {
		c.both = time.Now()
		if !c.excused {
			c.t.Errorf("Invariant 1: %d nodes trust their terms at the same time", leading)
		}
	}
	c.overlap = max(c.overlap, time.Since(c.both), time.Millisecond)
}

// see records a valid term.
func (c *checker) see(term *tenure.Term) {
	for _, known := range c.known {
		if known == term {
			return
		}
	}
	if n := len(c.known); n > 0 {
		last := c.known[n-1]
		if last.Number() >= term.Number() {
			c.t.Errorf("Invariant 2: term %d came after term %d", term.Number(), last.Number())
		}
		if last.Context().Err() == nil && !c.excused {
			c.t.Errorf("the context of term %d still stands while term %d has begun", last.Number(), term.Number())
		}
	}
	c.known = append(c.known, term)
}
