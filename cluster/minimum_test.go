package cluster

import (
	"slices"
	"testing"

	"github.com/exactly-one/tenure"
)

func TestJoiningAndActiveNodesCountForTheMinimum(t *testing.T) {
	t.Parallel()
	var members []tenure.Member
	for i, status := range []tenure.NodeStatus{Draining, Joining, Dead, Active} {
		m := member(i)
		m.Status = status
		members = append(members, m)
	}
	counted, others := countedNames(members)
	if !slices.Equal(counted, []string{"b", "d"}) || !slices.Equal(others, []string{"a (draining)"}) {
		t.Errorf("counted are %v, others %v; want b and d, and a", counted, others)
	}
}
