//go:build linux

package agent_test

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/testkit"
)

// site is an installation with agents and nodes in separate processes.
type site struct {
	*testing.T
	server *pgtest.Server
	schema string
	lease  time.Duration
	steps  *steplog.History
	began  time.Time
	nodes  []*children.Child

	tolerated time.Duration // longest overlap that the guarantees allow in the test
}

// newSite makes an installation. When the test ends, no two nodes may have led at
// the same time (Invariant 1), unless the test tolerates it.
func newSite(t *testing.T, lease time.Duration) *site {
	s := &site{T: t, server: pgtest.Shared(t), lease: lease, steps: steplog.New(t), began: time.Now()}
	s.schema = s.server.Schema(t)
	t.Cleanup(s.checkOverlaps)
	return s
}

func (s *site) checkOverlaps() {
	for i, a := range s.nodes {
		for _, b := range s.nodes[:i] {
			for _, o := range children.Overlaps(a.Leads(), b.Leads()) {
				if o.Length() > s.tolerated {
					s.Errorf("invariant 1: %s and %s led at the same time for %v", a.Name, b.Name, o.Length())
				}
			}
		}
	}
}

func (s *site) start(o order) *children.Child {
	s.Helper()
	o.Lease, o.Schema = s.lease, s.schema
	env, died := s.steps.Child()
	return children.Spawn(s, childVariable, o, children.Options{Name: o.Name, Env: env, Ended: died})
}

// agent starts an agent on a database and waits until it is ready.
func (s *site) agent(name, dsn, path string) *children.Child {
	s.Helper()
	c := s.start(order{Name: name, DSN: dsn, Path: path})
	children.Await(s, c, "ready", time.Time{})
	return c
}

// join starts nodes of an agent.
func (s *site) join(path string, names ...string) (joined []*children.Child) {
	s.Helper()
	for _, name := range names {
		c := s.start(order{Name: name, Path: path})
		joined = append(joined, c)
		s.nodes = append(s.nodes, c)
	}
	for _, c := range joined {
		children.Await(s, c, "ready", time.Time{})
	}
	return joined
}

// leader waits for a leader among some nodes.
func (s *site) leader(among ...*children.Child) *children.Child {
	s.Helper()
	i := -1
	testkit.AwaitWithin(s, patience, "a node leads", func() bool { i = slices.IndexFunc(among, (*children.Child).Leading); return i >= 0 })
	return among[i]
}

// successor waits for the next term that begins after a moment on another node
// than the old leader, and returns how long it took.
func (s *site) successor(old *children.Child, since time.Time) (next *children.Child, took time.Duration) {
	s.Helper()
	testkit.AwaitWithin(s, patience, "another node leads", func() bool {
		return slices.ContainsFunc(s.nodes, func(c *children.Child) bool {
			r, found := c.Find("acquired", since)
			next, took = c, r.Time().Sub(since)
			return found && c != old
		})
	})
	return next, took
}

func (s *site) signal(c *children.Child, signal os.Signal) {
	s.Helper()
	if err := c.Signal(signal); err != nil {
		s.Fatal(err)
	}
}

// stop stops a process. A stopped leader must notice nothing that happens after this.
func (s *site) stop(c *children.Child) {
	s.Helper()
	if err := c.Stop(); err != nil {
		s.Fatal(err)
	}
}

func (s *site) cont(c *children.Child) { s.signal(c, syscall.SIGCONT) }

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%03d", prefix, i))
	}
	return all
}
