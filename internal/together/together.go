// Package together runs subtests that mostly wait at the same time. They need one place
// of the limit -parallel, that of their parent: the wait for the end of a lease takes no
// processor.
package together

import (
	"sync"
	"testing"
)

// atOnce is how many subtests run at the same time. Each of them works before it waits,
// so a busy machine must not run all of them.
const atOnce = 4

// Group is the subtests of one test.
type Group struct {
	t      *testing.T
	places chan struct{}
	group  sync.WaitGroup
}

// New returns a group of subtests of t. The test must call Wait before it returns.
func New(t *testing.T) *Group {
	t.Helper()
	return &Group{t: t, places: make(chan struct{}, atOnce)}
}

// Run starts a subtest when there is a place for it. The subtest must not call
// t.Parallel.
func (g *Group) Run(name string, test func(*testing.T)) {
	g.places <- struct{}{}
	g.group.Go(func() {
		defer func() { <-g.places }()
		g.t.Run(name, test)
	})
}

// Wait waits until all subtests have ended.
func (g *Group) Wait() { g.group.Wait() }
