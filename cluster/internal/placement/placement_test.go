package placement

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// id returns the n-th id in order.
func id(n int) uuid.UUID { return uuid.UUID{0: byte(n >> 8), 1: byte(n), 15: 1} }

func equalNodes(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{ID: id(i), Name: fmt.Sprintf("n%d", i), Weight: 1}
	}
	return nodes
}

func plainRoles(n int) []Role {
	roles := make([]Role, n)
	for i := range roles {
		roles[i].Name = fmt.Sprintf("r%05d", i)
	}
	return roles
}

// settled returns the input after a plan has been applied.
func settled(q Input) Input {
	q.Leaders = Make(q).Placed
	return q
}

func counts(placed map[string]uuid.UUID) map[uuid.UUID]int {
	n := map[uuid.UUID]int{}
	for _, node := range placed {
		n[node]++
	}
	return n
}

// moves lists the roles that another node leads afterwards.
func moves(before, after map[string]uuid.UUID) map[string][2]uuid.UUID {
	moved := map[string][2]uuid.UUID{}
	for role, to := range after {
		if from, held := before[role]; held && from != to {
			moved[role] = [2]uuid.UUID{from, to}
		}
	}
	return moved
}

var zones = []string{"eu", "us", "ap"}

// draw draws an input: with labels, some roles require some; with preferences, some
// prefer some. Any node may hold roles.
func draw(t *rapid.T, labels, weights, preferences bool) Input {
	var q Input
	q.Nodes = equalNodes(rapid.IntRange(0, 6).Draw(t, "nodes"))
	for i := range q.Nodes {
		n := &q.Nodes[i]
		n.Labels = map[string]string{"zone": rapid.SampledFrom(zones).Draw(t, "zone")}
		n.Leaving = rapid.IntRange(0, 5).Draw(t, "leaves") == 0
		if weights {
			n.Weight = rapid.SampledFrom([]float64{0.1, 0.5, 1, 2, 3, 10}).Draw(t, "weight")
		}
	}
	q.Roles = plainRoles(rapid.IntRange(0, 30).Draw(t, "roles"))
	q.Leaders = map[string]uuid.UUID{}
	for i := range q.Roles {
		r := &q.Roles[i]
		if labels && rapid.Bool().Draw(t, "requires") {
			r.Requires = map[string]string{"zone": rapid.SampledFrom(zones).Draw(t, "required")}
		}
		if preferences && rapid.Bool().Draw(t, "prefers") {
			r.Prefers = map[string]string{"zone": rapid.SampledFrom(zones).Draw(t, "preferred")}
		}
		if holder := rapid.IntRange(-1, len(q.Nodes)).Draw(t, "holder"); holder >= 0 {
			q.Leaders[r.Name] = id(holder) // the last one takes no part
		}
	}
	return q
}

func TestEveryRoleIsPlacedOrHasAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, true, true, true)
		q.MoveToPreferred = rapid.Bool().Draw(t, "honor")
		plan := Make(q)
		unplaced := map[string]string{}
		for _, u := range plan.Unplaced {
			unplaced[u.Role] = u.Reason
		}
		for _, r := range q.Roles {
			possible := slices.ContainsFunc(q.Nodes, func(n Node) bool { return !n.Leaving && has(n.Labels, r.Requires) })
			node, placed := plan.Placed[r.Name]
			switch {
			case placed != possible:
				t.Fatalf("%s: possible %v, placed %v", r.Name, possible, placed)
			case placed != (unplaced[r.Name] == ""):
				t.Fatalf("%s: placed %v, reason %q", r.Name, placed, unplaced[r.Name])
			case placed:
				i := slices.IndexFunc(q.Nodes, func(n Node) bool { return n.ID == node })
				if q.Nodes[i].Leaving || !has(q.Nodes[i].Labels, r.Requires) {
					t.Fatalf("%s was placed on %s, which may not lead it", r.Name, q.Nodes[i].Name)
				}
			}
		}
		if len(plan.Placed)+len(plan.Unplaced) != len(q.Roles) {
			t.Fatalf("%d roles: %d placed, %d not", len(q.Roles), len(plan.Placed), len(plan.Unplaced))
		}
	})
}

func TestNoNodeExceedsItsShareRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, false, true, true)
		sum := 0.0
		for _, n := range q.Nodes {
			if !n.Leaving {
				sum += n.Weight
			}
		}
		n := counts(Make(q).Placed)
		for _, node := range q.Nodes {
			share := float64(len(q.Roles)) * node.Weight / sum
			if float64(n[node.ID]) > math.Ceil(share-1e-9) {
				t.Fatalf("%s of weight %v has %d roles; its share is %.2f", node.Name, node.Weight, n[node.ID], share)
			}
		}
	})
}

func TestEqualNodesDifferByOneAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, false, false, true)
		n := counts(Make(q).Placed)
		least, most := math.MaxInt, 0
		for _, node := range q.Nodes {
			if !node.Leaving {
				least, most = min(least, n[node.ID]), max(most, n[node.ID])
			}
		}
		if most > 0 && most-least > 1 {
			t.Fatalf("the nodes have %v", n)
		}
	})
}

func TestFairPlacementIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := settled(draw(t, true, true, true))
		if moved := moves(q.Leaders, Make(q).Placed); len(moved) > 0 {
			t.Fatalf("moved for nothing: %v", moved)
		}
	})
}

func TestJoinMovesRolesOnlyToTheJoiner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, false, false, true)
		before := settled(q)
		if len(before.Leaders) == 0 {
			return
		}
		joined := before
		newcomer := Node{ID: id(rapid.SampledFrom([]int{7, 300}).Draw(t, "id")), Weight: 1}
		joined.Nodes = append(slices.Clone(before.Nodes), newcomer)
		after := Make(joined)
		moved := moves(before.Leaders, after.Placed)
		for role, move := range moved {
			if move[1] != newcomer.ID {
				t.Fatalf("%s moved from %v to %v, which had been there", role, move[0], move[1])
			}
		}
		staying := len(joined.Nodes)
		for _, n := range joined.Nodes {
			if n.Leaving {
				staying--
			}
		}
		if share := len(q.Roles) / staying; len(moved) < share || len(moved) > share+1 {
			t.Fatalf("%d roles moved; the share of the newcomer is %d", len(moved), share)
		}
	})
}

func TestLeaveMovesOnlyRolesOfTheLeaver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := settled(draw(t, false, false, true))
		if len(before.Nodes) < 2 {
			return
		}
		after := before
		after.Nodes = slices.Clone(before.Nodes)
		leaver := rapid.IntRange(0, len(after.Nodes)-1).Draw(t, "leaver")
		if rapid.Bool().Draw(t, "dead") {
			after.Nodes = slices.Delete(after.Nodes, leaver, leaver+1)
		} else {
			after.Nodes[leaver].Leaving = true
		}
		for role, move := range moves(before.Leaders, Make(after).Placed) {
			if move[0] != before.Nodes[leaver].ID {
				t.Fatalf("%s moved from %v, which stays", role, move[0])
			}
		}
	})
}

// With weights too, nothing moves but from a node that has more than its share
// to one that has less.
func TestWeightedMovesAreNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, false, true, false)
		after := Make(q)
		had, has := counts(q.Leaders), counts(after.Placed)
		leaves := map[uuid.UUID]bool{id(len(q.Nodes)): true}
		for _, n := range q.Nodes {
			leaves[n.ID] = n.Leaving
		}
		for role, move := range moves(q.Leaders, after.Placed) {
			from, to := move[0], move[1]
			if !leaves[from] && (has[from] >= had[from] || has[to] <= had[to]) {
				t.Fatalf("%s moved from a node with %d roles, then %d, to one with %d, then %d",
					role, had[from], has[from], had[to], has[to])
			}
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, true, true, true)
		shuffled := q
		shuffled.Nodes = rapid.Permutation(q.Nodes).Draw(t, "nodes' order")
		shuffled.Roles = rapid.Permutation(q.Roles).Draw(t, "roles' order")
		if a, b := Make(q), Make(shuffled); !maps.Equal(a.Placed, b.Placed) || !slices.Equal(a.Unplaced, b.Unplaced) {
			t.Fatalf("%v\n%v", a, b)
		}
	})
}

// Whatever part of a plan has happened, what remains is the rest of it.
func TestPartlyAppliedPlanContinues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, false, rapid.Bool().Draw(t, "weights"), true)
		plan := Make(q)
		half := q
		half.Leaders = maps.Clone(q.Leaders)
		for _, r := range q.Roles {
			to, placed := plan.Placed[r.Name]
			if !placed || half.Leaders[r.Name] == to {
				continue
			}
			switch rapid.IntRange(0, 2).Draw(t, "done") {
			case 1: // released
				delete(half.Leaders, r.Name)
			case 2:
				half.Leaders[r.Name] = to
			}
		}
		if rest := Make(half); !maps.Equal(plan.Placed, rest.Placed) {
			t.Fatalf("the plan has changed: %v", moves(plan.Placed, rest.Placed))
		}
	})
}

// A deliberately dumb model: no assignment at all is more even.
func TestConstrainedPlacementIsAsEvenAsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, true, false, false)
		q.Roles = q.Roles[:min(len(q.Roles), 6)]
		q.Nodes = q.Nodes[:min(len(q.Nodes), 4)]
		plan := Make(q)
		squares := func(n map[uuid.UUID]int) (sum int) {
			for _, n := range n {
				sum += n * n
			}
			return sum
		}
		best := math.MaxInt
		n := map[uuid.UUID]int{}
		var try func(i int)
		try = func(i int) {
			if i == len(q.Roles) {
				best = min(best, squares(n))
				return
			}
			possible := false
			for _, node := range q.Nodes {
				if !node.Leaving && has(node.Labels, q.Roles[i].Requires) {
					possible = true
					n[node.ID]++
					try(i + 1)
					n[node.ID]--
				}
			}
			if !possible {
				try(i + 1)
			}
		}
		try(0)
		if got := squares(counts(plan.Placed)); got != best {
			t.Fatalf("the sum of squares is %d, could be %d", got, best)
		}
	})
}

func TestVacantRolesGoToPreferredNodes(t *testing.T) {
	q := Input{Nodes: equalNodes(2), Roles: plainRoles(4)}
	q.Nodes[1].Labels = map[string]string{"disk": "fast"}
	q.Roles[0].Prefers = map[string]string{"disk": "fast"}
	q.Roles[1].PreferredNode = q.Nodes[1].ID.String()
	q.Roles[3].PreferredNode = "n0"
	want := map[string]uuid.UUID{"r00000": id(1), "r00001": id(1), "r00002": id(0), "r00003": id(0)}
	if plan := Make(q); !maps.Equal(plan.Placed, want) {
		t.Errorf("got %v", plan.Placed)
	}
	if plan := Make(settled(q)); !maps.Equal(plan.Placed, want) {
		t.Errorf("moved to %v", plan.Placed)
	}
}

func TestMoveToPreferredMovesLedRoles(t *testing.T) {
	q := Input{Nodes: equalNodes(2), Roles: plainRoles(4)}
	for i := range 3 { // more than the node can have
		q.Roles[i].PreferredNode = "n1"
	}
	q.Leaders = map[string]uuid.UUID{"r00000": id(0), "r00001": id(0), "r00002": id(1), "r00003": id(1)}
	if moved := moves(q.Leaders, Make(q).Placed); len(moved) > 0 {
		t.Errorf("moved without being asked: %v", moved)
	}
	q.MoveToPreferred = true
	want := map[string]uuid.UUID{"r00000": id(1), "r00001": id(0), "r00002": id(1), "r00003": id(0)}
	if plan := Make(q); !maps.Equal(plan.Placed, want) {
		t.Errorf("got %v, want %v", plan.Placed, want)
	}
}

func TestMoveToPreferredConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, true, true, true)
		q.MoveToPreferred = true
		q = settled(q)
		if moved := moves(q.Leaders, Make(q).Placed); len(moved) > 0 {
			t.Fatalf("the second time moved %v", moved)
		}
		q.MoveToPreferred = false
		if moved := moves(q.Leaders, Make(q).Placed); len(moved) > 0 {
			t.Fatalf("the usual plan moved back %v", moved)
		}
	})
}

func TestUnplacedRolesHaveReasons(t *testing.T) {
	eu, fast := map[string]string{"zone": "eu"}, map[string]string{"zone": "eu", "disk": "fast"}
	for _, test := range []struct {
		name     string
		nodes    []Node
		requires map[string]string
		want     string
	}{
		{"no nodes", nil, nil, "no live node takes part"},
		{"leaving", []Node{{ID: id(1), Weight: 1, Leaving: true}}, nil, "every node that takes part is leaving"},
		{"label", equalNodes(1), eu, "no live node has the label zone=eu"},
		{"labels", []Node{
			{ID: id(1), Weight: 1, Labels: eu}, {ID: id(2), Weight: 1, Labels: map[string]string{"disk": "fast"}},
		}, fast, "no live node has all of the labels disk=fast, zone=eu"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := Make(Input{Nodes: test.nodes, Roles: []Role{{Name: "r", Requires: test.requires}}})
			want := []Unplaced{{"r", test.want}}
			if !slices.Equal(plan.Unplaced, want) {
				t.Errorf("got %q, want %q", plan.Unplaced, want)
			}
		})
	}
}

// large is an input of the largest supported size.
func large(vacant, labels bool) Input {
	random := rand.New(rand.NewPCG(1, 2))
	q := Input{Nodes: equalNodes(200), Roles: plainRoles(20_000), Leaders: map[string]uuid.UUID{}}
	for i := range q.Nodes {
		q.Nodes[i].Labels = map[string]string{"zone": zones[i%len(zones)]}
	}
	for i := range q.Roles {
		if labels && i%2 == 0 {
			q.Roles[i].Requires = map[string]string{"zone": zones[random.IntN(len(zones))]}
		}
		if labels && i%3 == 0 {
			q.Roles[i].Prefers = map[string]string{"zone": zones[random.IntN(len(zones))]}
		}
		if !vacant {
			q.Leaders[q.Roles[i].Name] = id(random.IntN(100)) // the other half has just joined
		}
	}
	return q
}

func TestLargePlanIsFast(t *testing.T) {
	pgtest.Long(t)
	const bound = time.Second // the benchmark measures the time
	for _, vacant := range []bool{true, false} {
		for _, labels := range []bool{true, false} {
			q := large(vacant, labels)
			took := time.Duration(math.MaxInt64)
			for n := 0; n < 5 && took > bound; n++ { // other processes only add to the time
				begun := time.Now()
				plan := Make(q)
				took = min(took, time.Since(begun))
				if len(plan.Placed) != len(q.Roles) {
					t.Fatalf("%d of %d roles were placed", len(plan.Placed), len(q.Roles))
				}
			}
			t.Logf("vacant %v, labels %v: %v", vacant, labels, took)
			if took > bound {
				t.Errorf("%d roles were placed in %v, want at most %v", len(q.Roles), took, bound)
			}
		}
	}
}

func BenchmarkMake(b *testing.B) {
	for _, vacant := range []bool{true, false} {
		for _, labels := range []bool{false, true} {
			b.Run(fmt.Sprintf("vacant=%v/labels=%v", vacant, labels), func(b *testing.B) {
				q := large(vacant, labels)
				for b.Loop() {
					Make(q)
				}
			})
		}
	}
}

// The method alone would place all roles on one heavy node among many light ones.
func TestHeavyNodeIsCapped(t *testing.T) {
	q := Input{Nodes: equalNodes(101), Roles: plainRoles(20)}
	q.Nodes[0].Weight = 10
	for i := range q.Nodes[1:] {
		q.Nodes[1+i].Weight = 0.1
	}
	if n := counts(Make(q).Placed)[id(0)]; n != 10 {
		t.Errorf("the heavy node has %d of 20 roles; its share is 10", n)
	}
}

// A role that cannot stay goes to another node that it prefers as much, although
// one that prefers nothing has to make room.
func TestMoveToPreferredFindsAnotherPreferredNode(t *testing.T) {
	q := Input{Nodes: equalNodes(3), Roles: plainRoles(3), MoveToPreferred: true}
	for i, zone := range []string{"eu", "us", "eu"} {
		q.Nodes[i].Weight, q.Nodes[i].Labels = []float64{0.1, 0.5, 0.1}[i], map[string]string{"zone": zone}
	}
	q.Roles[2].Prefers = map[string]string{"zone": "eu"}
	q.Leaders = map[string]uuid.UUID{"r00000": id(0), "r00001": id(0), "r00002": id(2)}
	if to := Make(q).Placed["r00002"]; to == id(1) {
		t.Error("the role went to a node that it does not prefer")
	}
}
