package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
)

// ErrUnknownSpread says that no node has shared roles under a name.
var ErrUnknownSpread = fmt.Errorf("%w: no such spread", tenure.ErrTenure)

// RebalancePlan is how roles should move so that every node has its share and
// they are led, as far as that is fair, by the nodes that they prefer.
type RebalancePlan struct {
	Moves    []Move         // ordered by role
	Unplaced []UnplacedRole // ordered by role
	Vacant   []string       // roles that have a place but no leader just now, ordered
	Nodes    []NodeShare    // the nodes that share roles, ordered by name
}

// Move is a role that should be led by another node.
type Move struct {
	Role     string
	From, To NodeID
}

// NodeShare is how many of the roles a node leads.
type NodeShare struct {
	Node          NodeID
	Name          string
	Before, After int
}

// PlanRebalance plans what to move of the named spreads, or of all if none is
// named. Other than the members, which move a role only if they must, it takes
// roles back to the nodes that they prefer. Nothing moves before
// [RebalancePlan.Apply]. The error matches [ErrUnknownSpread] if there is no
// spread of a name, and tenure.ErrUnsupported if the store keeps none.
func PlanRebalance(ctx context.Context, store Store, names ...string) (RebalancePlan, error) {
	plan, err := planRebalance(ctx, store, names)
	if err != nil {
		return RebalancePlan{}, fmt.Errorf("planning to rebalance: %w", err)
	}
	return plan, nil
}

func planRebalance(ctx context.Context, store Store, names []string) (RebalancePlan, error) {
	definitions, err := readDefinitions(ctx, store, names)
	if err != nil {
		return RebalancePlan{}, err
	}
	members, err := store.Members(ctx)
	if err != nil {
		return RebalancePlan{}, err
	}
	for i := range members {
		if unmarked(members[i]) {
			members[i].Status = Dead
		}
	}
	var plan RebalancePlan
	shares := map[uuid.UUID]*NodeShare{}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		roles := definitions[name]
		if len(roles) == 0 {
			continue // no role would stand for all
		}
		question := placement.Question{
			Nodes: participants(members, name), Roles: roles, Holders: map[string]uuid.UUID{}, Honor: true,
		}
		known := make([]string, len(roles))
		for i, role := range roles {
			known[i] = role.Name
		}
		leaders, err := store.Leaders(ctx, known...)
		if err != nil {
			return RebalancePlan{}, err
		}
		for _, leader := range leaders {
			question.Holders[leader.Role] = leader.NodeID
		}
		plan.add(question, shares)
	}
	slices.SortFunc(plan.Moves, func(a, b Move) int { return cmp.Compare(a.Role, b.Role) })
	slices.SortFunc(plan.Unplaced, func(a, b UnplacedRole) int { return cmp.Compare(a.Role, b.Role) })
	slices.Sort(plan.Vacant)
	for _, share := range shares {
		plan.Nodes = append(plan.Nodes, *share)
	}
	slices.SortFunc(plan.Nodes, func(a, b NodeShare) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node.String(), b.Node.String()))
	})
	return plan, nil
}

// add adds what is to be moved of one spread.
func (p *RebalancePlan) add(question placement.Question, shares map[uuid.UUID]*NodeShare) {
	for _, node := range question.Nodes {
		if shares[node.ID] == nil {
			shares[node.ID] = &NodeShare{Node: NodeID(node.ID), Name: node.Name}
		}
	}
	plan := placement.Make(question)
	p.Unplaced = append(p.Unplaced, unplacedRoles(plan)...)
	for role, to := range plan.Placed {
		from, led := question.Holders[role]
		switch {
		case !led:
			p.Vacant = append(p.Vacant, role)
		case from != to:
			p.Moves = append(p.Moves, Move{role, NodeID(from), NodeID(to)})
		}
		shares[to].After++
	}
	for _, node := range question.Holders {
		if share := shares[node]; share != nil {
			share.Before++
		}
	}
}

const (
	// rebalanceBatch is how many roles are asked for at once.
	rebalanceBatch = 32
	// rebalancePause is the time between two batches: the members look who
	// leads what in it.
	rebalancePause = 300 * time.Millisecond
	// rebalanceLook is the time between two looks at who leads a batch.
	rebalanceLook = 50 * time.Millisecond
)

// Apply moves the roles: it asks their leaders, in the name of by, to hand them
// over, some at a time, and follows each until another leads. progress, if not
// nil, is called with the number of roles that were asked for so far. It returns
// when others lead all of them, or the context ends, with an error then. A role
// whose leader has changed since the plan was made is left alone. Roles that could not
// be asked for are named in the error; the others move all the same.
func (p RebalancePlan) Apply(ctx context.Context, store Store, by string, progress func(moved int)) error {
	clock := tenure.SystemClock()
	var failed error
	moved := 0
	// One move of each node after the other, so that none gets many before it
	// has given some.
	for batch := range slices.Chunk(alternate(p.Moves), rebalanceBatch) {
		if moved > 0 {
			wait(ctx, clock, rebalancePause, nil)
		}
		failed = errors.Join(failed, applyBatch(ctx, store, clock, by, batch))
		if ctx.Err() != nil {
			return fmt.Errorf("rebalancing: %d of %d roles were asked for: %w", moved+len(batch), len(p.Moves), failed)
		}
		moved += len(batch)
		if progress != nil {
			progress(moved)
		}
	}
	if failed != nil {
		return fmt.Errorf("rebalancing: %w", failed)
	}
	return nil
}

// alternate orders moves such that every node gives and gets in turn.
func alternate(moves []Move) []Move {
	given := map[Move]int{}
	turns := make(map[string]int, len(moves))
	for _, move := range moves {
		route := Move{From: move.From, To: move.To}
		turns[move.Role] = given[route]
		given[route]++
	}
	ordered := slices.Clone(moves)
	slices.SortStableFunc(ordered, func(a, b Move) int { return cmp.Compare(turns[a.Role], turns[b.Role]) })
	return ordered
}

var errUnfinished = errors.New("some roles have not moved yet")

// applyBatch asks for the roles of a batch and waits until others lead them. One
// that its leader took back, since the other was too slow, is asked for again.
func applyBatch(ctx context.Context, store Store, clock tenure.Clock, by string, batch []Move) error {
	asked := map[string]int64{} // which term was asked to end
	var failed error
	for pending := batch; ; {
		leaders, err := leadersOf(ctx, store, pending)
		if err != nil {
			return errors.Join(failed, err)
		}
		pending = slices.DeleteFunc(slices.Clone(pending), func(move Move) bool {
			leader, led := leaders[move.Role]
			term, before := asked[move.Role]
			switch {
			case !led:
				return !before // nobody led it to begin with
			case leader.NodeID != move.From.UUID():
				return true
			case before && term == leader.Term:
				return false // it has not ended yet
			}
			asked[move.Role] = leader.Term
			err := store.Request(ctx, tenure.Request{
				Kind: tenure.RequestHandOver, Role: move.Role, Target: move.To.UUID(), By: by,
			})
			if err != nil && !errors.Is(err, tenure.ErrNoLeader) {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", move.Role, err))
				return true
			}
			return false
		})
		if len(pending) == 0 {
			return failed
		}
		wait(ctx, clock, rebalanceLook, nil)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %d of a batch: %w", errUnfinished, len(pending), context.Cause(ctx))
		}
	}
}

func leadersOf(ctx context.Context, store Store, moves []Move) (map[string]tenure.Leader, error) {
	if len(moves) == 0 {
		return nil, nil
	}
	roles := make([]string, len(moves))
	for i, move := range moves {
		roles[i] = move.Role
	}
	leaders, err := store.Leaders(ctx, roles...)
	if err != nil {
		return nil, err
	}
	by := make(map[string]tenure.Leader, len(leaders))
	for _, leader := range leaders {
		by[leader.Role] = leader
	}
	return by, nil
}
