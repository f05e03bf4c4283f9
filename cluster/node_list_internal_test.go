package cluster

import (
	"slices"
	"testing"

	"github.com/exactly-one/tenure"
)

// A view that reads a node again keeps the lists and maps of its description until they
// change, and then follows them.
func TestViewSharesOnlyWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	described := func(zone, capability, role string, weight float64) tenure.Member {
		m := member(1)
		m.Labels, m.Capabilities = map[string]string{"zone": zone}, []string{capability}
		m.Roles, m.Spreads = []string{role}, map[string]float64{"work": weight}
		return m
	}
	read := func(m tenure.Member) NodeInfo {
		s.show(member(0), m)
		list, _, _ := s.view.snapshot()
		return list.nodes[list.at[m.ID]]
	}
	first := read(described("a", "c", "r", 1))
	if again := read(described("a", "c", "r", 1)); &again.Capabilities[0] != &first.Capabilities[0] || &again.Roles[0] != &first.Roles[0] {
		t.Error("the lists of a node that has not changed were copied")
	}
	for name, changed := range map[string]tenure.Member{
		"label": described("b", "c", "r", 1), "capability": described("a", "d", "r", 1),
		"role": described("a", "c", "s", 1), "weight": described("a", "c", "r", 2),
	} {
		if now := read(changed); now.Labels["zone"] != changed.Labels["zone"] || !slices.Equal(now.Capabilities, changed.Capabilities) ||
			string(now.Roles[0]) != changed.Roles[0] || now.Spreads["work"] != changed.Spreads["work"] {
			t.Errorf("after a change of the %s the view has %+v", name, now)
		}
		read(described("a", "c", "r", 1))
	}
}

// What is empty is an empty list, as programs that encode it expect.
func TestEmptyListOfNodesIsNotNil(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if nodes := (&Member{view: s.view}).Nodes(); nodes == nil {
		t.Error("before the first read, the nodes are nil")
	}
	s.show(member(0))
	if change := expect(t, s.watch(Filter{Statuses: []NodeStatus{Draining}}), Snapshot, ""); change.Nodes == nil {
		t.Error("the nodes of an empty snapshot are nil")
	}
}
