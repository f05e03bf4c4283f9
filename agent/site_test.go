//go:build linux

package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/steplog"
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
	text, err := json.Marshal(o)
	if err != nil {
		s.Fatal(err)
	}
	env, died := s.steps.Child()
	c, err := children.Start(children.Options{Name: o.Name, Env: append(env, childVariable+"="+string(text)), Ended: died})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Kill)
	return c
}

// agent starts an agent on a database and waits until it is ready.
func (s *site) agent(name, dsn, path string) *children.Child {
	s.Helper()
	c := s.start(order{Name: name, DSN: dsn, Path: path})
	s.await(c, "ready", time.Time{})
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
		s.await(c, "ready", time.Time{})
	}
	return joined
}

func (s *site) await(c *children.Child, kind string, since time.Time) children.Report {
	s.Helper()
	r, err := c.Await(s.Context(), kind, since)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// leader waits for a leader among some nodes.
func (s *site) leader(among ...*children.Child) *children.Child {
	s.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		for _, c := range among {
			if c.Leading() {
				return c
			}
		}
	}
	s.Fatal("no node leads")
	return nil
}

// successor waits for the next term that begins after a moment on another node
// than the old leader, and returns how long it took.
func (s *site) successor(old *children.Child, since time.Time) (*children.Child, time.Duration) {
	s.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		for _, c := range s.nodes {
			if c == old {
				continue
			}
			if r, found := c.Find("acquired", since); found {
				return c, r.Time().Sub(since)
			}
		}
	}
	s.Fatalf("no node follows %s", old.Name)
	return nil, 0
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
