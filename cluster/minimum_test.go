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
	if got := countedNames(members); !slices.Equal(got, []string{"b", "d"}) {
		t.Errorf("counted are %v; want b and d", got)
	}
}
