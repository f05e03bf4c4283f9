package assign

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/exactly-one/tenure/cluster"
)

// worker is a node that accepts rows, with a load in percent.
func worker(load float64, capabilities ...string) cluster.NodeInfo {
	return cluster.NodeInfo{
		ID: cluster.NewNodeID(), Status: cluster.Active, Roles: []cluster.NodeRole{cluster.Worker}, Capabilities: capabilities,
		CPUUsage: load, MemoryUsage: load,
	}
}

func TestWeightCombinesLoadAndRows(t *testing.T) {
	t.Parallel()
	config := Config{}.withDefaults()
	idle, busy, laden := worker(0), worker(50), worker(0)
	shares := map[string]share{laden.ID.String(): {assigned: 20, running: 10}}
	places := newPlacement(config.MaxPerNode, config.candidates([]cluster.NodeInfo{idle, busy, laden}, shares))
	given := map[string]int{}
	for range 90 {
		node, ok := places.chooseNode("")
		if !ok {
			t.Fatal("there is no place")
		}
		given[node]++
	}
	// First the idle node up to 30, then also the loaded one up to 50, then all.
	for node, want := range map[cluster.NodeID]int{idle.ID: 57, busy.ID: 7, laden.ID: 26} {
		if got := given[node.String()]; got < want-1 || got > want+1 {
			t.Errorf("%d rows were given where %d were expected: %v", got, want, given)
		}
	}
}

func TestCandidatesAcceptRows(t *testing.T) {
	t.Parallel()
	config := Config{}.withDefaults()
	active := worker(0)
	joining, draining, dead, gateway := worker(0), worker(0), worker(0), worker(0)
	joining.Status, draining.Status, dead.Status = cluster.Joining, cluster.Draining, cluster.Dead
	gateway.Roles = []cluster.NodeRole{cluster.Gateway}
	all := config.candidates([]cluster.NodeInfo{joining, active, draining, dead, gateway}, nil)
	if len(all) != 1 || all[0].id != active.ID.String() {
		t.Errorf("rows are given to %d nodes; one is an active worker", len(all))
	}
}

// With no limit in effect, two nodes have more places than an integer can count.
func TestUnlimitedNodesGetRows(t *testing.T) {
	t.Parallel()
	config := Config{MaxPerNode: math.MaxInt}.withDefaults()
	places := newPlacement(config.MaxPerNode, config.candidates([]cluster.NodeInfo{worker(0), worker(0)}, nil))
	if free := places.free(anyNode); free <= 0 {
		t.Errorf("two nodes without a limit have %d free places", free)
	}
}

// Each row goes to the least busy node that has its capability and capacity,
// and waits only if there is none.
func TestPlacementChoosesLeastBusyNode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config := Config{MaxPerNode: rapid.IntRange(1, 8).Draw(t, "places")}.withDefaults()
		capability := rapid.SampledFrom([]string{"", "a", "b", "c"})
		var nodes []cluster.NodeInfo
		left := map[string]int{}
		shares := map[string]share{}
		for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
			node := worker(rapid.Float64Range(0, 100).Draw(t, fmt.Sprint("load ", i)),
				rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID).Draw(t, fmt.Sprint("capabilities ", i))...)
			has := rapid.IntRange(0, 10).Draw(t, fmt.Sprint("rows ", i)) // also more than it may have
			shares[node.ID.String()] = share{assigned: has}
			left[node.ID.String()] = config.MaxPerNode - has
			nodes = append(nodes, node)
		}
		places := newPlacement(config.MaxPerNode, config.candidates(nodes, shares))
		weight := func(n cluster.NodeInfo) float64 {
			return n.Load() + float64(config.MaxPerNode-left[n.ID.String()])/float64(config.MaxPerNode)
		}
		for range rapid.IntRange(0, 40).Draw(t, "rows") {
			need := capability.Draw(t, "need")
			able := slices.DeleteFunc(slices.Clone(nodes), func(n cluster.NodeInfo) bool {
				return left[n.ID.String()] <= 0 || need != "" && !n.HasCapability(need)
			})
			id, ok := places.chooseNode(need)
			if ok != (len(able) > 0) {
				t.Fatalf("a row was given: %v; %d nodes could take it", ok, len(able))
			}
			if !ok {
				continue
			}
			at := slices.IndexFunc(able, func(n cluster.NodeInfo) bool { return n.ID.String() == id })
			if at < 0 {
				t.Fatalf("a row that needs %q was given to a node that cannot take it", need)
			}
			for _, other := range able {
				if weight(other) < weight(able[at]) {
					t.Fatalf("a row was given to a node with more to do: %v, and not %v", weight(able[at]), weight(other))
				}
			}
			left[id]--
		}
	})
}
