package tenuretest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

const lease = 10 * time.Second

// candidate is a node with one election, for tests in a bubble.
type candidate struct {
	*tenure.Election
	t *testing.T
}

// campaign opens a node that campaigns for the role until the test ends. It returns
// when nothing is left to do at that moment.
func campaign(t *testing.T, db tenure.Backend, name string, role tenure.Role, cfg tenure.Config) candidate {
	t.Helper()
	cfg.Name, cfg.Lease, cfg.Logger = name, lease, slog.New(slog.DiscardHandler)
	node, err := tenure.Open(t.Context(), db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := node.Close(ctx); err != nil {
			t.Errorf("closing %s: %v", name, err)
		}
	})
	return candidate{t: t}.join(node, role)
}

// join makes a node campaign for a role.
func (c candidate) join(node *tenure.Node, role tenure.Role) candidate {
	c.t.Helper()
	election, err := node.Election(role)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := election.Start(context.WithoutCancel(c.t.Context())); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
	return candidate{election, c.t}
}

// leads returns the candidate's term, which must stand.
func (c candidate) leads() *tenure.Term {
	c.t.Helper()
	synctest.Wait()
	term := c.Term()
	if term == nil {
		c.t.Fatalf("%s does not lead %s", c.Node().Name(), c.Role())
	}
	return term
}

// wantStandby checks that the candidate does not lead.
func (c candidate) wantStandby() {
	c.t.Helper()
	synctest.Wait()
	if c.IsLeader() {
		c.t.Fatalf("%s leads %s", c.Node().Name(), c.Role())
	}
}

// leadsWithin checks that the candidate leads before d has passed.
func (c candidate) leadsWithin(d time.Duration) *tenure.Term {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	defer cancel()
	term, err := c.WaitForLeadership(ctx)
	if err != nil {
		c.t.Fatalf("%s does not lead %s within %v: %v", c.Node().Name(), c.Role(), d, err)
	}
	return term
}

// endsWithin checks that a term ends before d has passed, for a reason.
func endsWithin(t *testing.T, term *tenure.Term, d time.Duration, reason error) {
	t.Helper()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-term.Context().Done():
	case <-late.C:
		t.Fatalf("term %d still stands after %v", term.Number(), d)
	}
	if term.Valid() {
		t.Errorf("term %d is valid although its context has ended", term.Number())
	}
	if cause := context.Cause(term.Context()); !errors.Is(cause, reason) {
		t.Errorf("term %d ended with %v, want %v", term.Number(), cause, reason)
	}
}
