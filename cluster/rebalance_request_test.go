package cluster_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// overtaken is a store in which another node begins to lead a role while the request for
// it is on its way.
type overtaken struct {
	cluster.Store

	leader   tenure.Leader
	next     tenure.Leader
	requests []tenure.Request
}

func (o *overtaken) Leaders(context.Context, ...string) ([]tenure.Leader, error) {
	return []tenure.Leader{o.leader}, nil
}

func (o *overtaken) Request(_ context.Context, request tenure.Request) error {
	o.requests = append(o.requests, request)
	o.leader = o.next
	if request.Term != 0 && request.Term != o.leader.Term {
		return tenure.ErrNoLeader
	}
	return nil
}

// TestRebalanceSparesNextLeader: a move ends only the term of the node that the role moves
// away from.
func TestRebalanceSparesNextLeader(t *testing.T) {
	t.Parallel()
	from, to, other := uuid.New(), uuid.New(), uuid.New()
	store := &overtaken{leader: tenure.Leader{Role: "r", Term: 7, NodeID: from}, next: tenure.Leader{Role: "r", Term: 8, NodeID: other}}
	plan := &cluster.RebalancePlan{Moves: []cluster.Move{{Role: "r", From: from, To: to}}}
	if err := plan.Apply(within(t), store, "test", nil); err != nil {
		t.Error(err)
	}
	if len(store.requests) != 1 || store.requests[0].Term != 7 {
		t.Errorf("the term of another node was requested to end: %+v", store.requests)
	}
}
