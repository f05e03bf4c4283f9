package tenure_test

import (
	"testing"
	"testing/synctest"

	"github.com/exactly-one/tenure"
)

// A node keeps nothing of an election that it forgets, and can make another one for the
// role.
func TestForgottenElectionMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, newDatabase())
		defer closeNode(t, node)
		job := tenure.NamedRole("job")
		limited := tenure.ElectionConfig{Group: "jobs", GroupLimit: 1}
		e, err := node.ElectionWith(job, limited)
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, "Forget while it leads", e.Forget(), tenure.ErrAlreadyStarted)
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		other, err := node.Election(tenure.NamedRole("other"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := other.WaitForLeadership(t.Context())
			waited <- err
		}()
		synctest.Wait()
		for _, one := range []*tenure.Election{e, e, other} {
			if err := one.Forget(); err != nil {
				t.Errorf("Forget %s: %v", one.Role(), err)
			}
		}
		wantError(t, "WaitForLeadership of a forgotten election", <-waited, tenure.ErrStopped)
		if left := len(node.Elections()); left > 0 {
			t.Errorf("%d elections of the node are left", left)
		}
		_, err = e.Campaign(t.Context())
		wantError(t, "Campaign of a forgotten election", err, tenure.ErrStopped)

		// The group is empty, so its limit may be another one.
		limited.GroupLimit = 2
		again, err := node.ElectionWith(job, limited)
		if err != nil {
			t.Fatalf("the empty group keeps its limit: %v", err)
		}
		next, err := again.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next.Number() <= term.Number() {
			t.Errorf("term %d follows term %d", next.Number(), term.Number())
		}
		if err := next.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Work that has not returned keeps its election.
func TestElectionWithWorkIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		node := open(t, db)
		defer closeNode(t, node)
		e, _ := elect(t, node, tenure.ElectionConfig{})
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db.last().kill()
		<-term.Context().Done()
		synctest.Wait()
		want(t, "state", e.State(), tenure.Stopped)
		wantError(t, "Forget before Resign", e.Forget(), tenure.ErrAlreadyStarted)
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Forget(); err != nil {
			t.Error(err)
		}
	})
}
