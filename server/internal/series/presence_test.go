package series

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestNodeUpFollowsNamesNotProcesses: a node that died and was replaced, by name or on its
// host, is not reported; one without a replacement is, until it is forgotten.
func TestNodeUpFollowsNamesNotProcesses(t *testing.T) {
	t.Parallel()
	minute := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }
	live := func(name, host string, started int) Node {
		return Node{ID: uuid.New(), Name: name, Host: host, Alive: true, Started: minute(started)}
	}
	dead := func(name, host string, started, died int) Node {
		return Node{ID: uuid.New(), Name: name, Host: host, Started: minute(started), Died: minute(died)}
	}
	for what, test := range map[string]struct {
		nodes []Node
		want  map[string]float64
	}{
		"a live node without samples":                  {[]Node{live("a", "h", 0)}, map[string]float64{"a": 1}},
		"a dead node":                                  {[]Node{dead("a", "h", 0, 1), live("b", "h", 2)}, map[string]float64{"a": 0, "b": 1}},
		"a restart under a new id":                     {[]Node{dead("a", "h", 0, 1), live("a", "g", 2)}, map[string]float64{"a": 1}},
		"a restart that began before the death":        {[]Node{dead("a", "h", 0, 3), live("a", "g", 2)}, map[string]float64{"a": 1}},
		"a restart under a new process id":             {[]Node{dead("h-10", "h", 0, 1), live("h-11", "h", 1)}, map[string]float64{"h-11": 1}},
		"two restarts":                                 {[]Node{dead("h-1", "h", 0, 1), dead("h-2", "h", 2, 3), live("h-3", "h", 4)}, map[string]float64{"h-3": 1}},
		"a restart that died":                          {[]Node{dead("h-1", "h", 0, 1), dead("h-2", "h", 2, 3)}, map[string]float64{"h-2": 0}},
		"one of two that died on a host came back":     {[]Node{dead("h-1", "h", 0, 1), dead("h-2", "h", 0, 2), live("h-3", "h", 4)}, map[string]float64{"h-1": 0, "h-3": 1}},
		"a process that was there before on that host": {[]Node{dead("h-1", "h", 0, 5), live("h-2", "h", 4)}, map[string]float64{"h-1": 0, "h-2": 1}},
		"a process on another host":                    {[]Node{dead("h-1", "h", 0, 1), live("g-2", "g", 4)}, map[string]float64{"h-1": 0, "g-2": 1}},
		"a process of another kind on that host":       {[]Node{dead("h-1", "h", 0, 1), live("h-api", "h", 4)}, map[string]float64{"h-1": 0, "h-api": 1}},
		"no node":                                      {nil, map[string]float64{}},
	} {
		s := New(Config{})
		s.Complete(minute(10), nil, test.nodes)
		if got := upNames(s); !maps.Equal(got, test.want) {
			t.Errorf("%s: tenure_node_up is %v; want %v", what, got, test.want)
		}
	}
}

// TestNodeUpEndsWhenNodesLeave: nodes that leave have no series, and the replacement of
// a dead node that leaves does not make it down again.
func TestNodeUpEndsWhenNodesLeave(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	died := Node{ID: uuid.New(), Name: "a", Died: begin}
	again := Node{ID: uuid.New(), Name: "a", Alive: true, Started: begin}
	for i, step := range []struct {
		nodes []Node
		want  map[string]float64
	}{
		{[]Node{died}, map[string]float64{"a": 0}},
		{[]Node{died, again}, map[string]float64{"a": 1}},
		{[]Node{died}, map[string]float64{}},
		{nil, map[string]float64{}},
		{[]Node{died}, map[string]float64{"a": 0}},
	} {
		s.Complete(begin.Add(time.Duration(i+1)*time.Second), nil, step.nodes)
		if got := upNames(s); !maps.Equal(got, step.want) {
			t.Errorf("step %d: tenure_node_up is %v; want %v", i, got, step.want)
		}
	}
}

// upNames returns the values of tenure_node_up by name.
func upNames(s *Store) map[string]float64 {
	all := map[string]float64{}
	for _, one := range s.named[nodeUpMetric] {
		if !one.over() {
			all[one.labels.Get(nodeNameLabel)] = one.last.value
		}
	}
	return all
}
