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
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/cluster/internal/placement"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// ErrUnknownSpread is returned if no node has shared roles under this name.
var ErrUnknownSpread = fmt.Errorf("%w: no such spread", tenure.ErrTenure)

// RebalancePlan has the moves of roles after which every node leads its share, and
// preferred nodes lead their roles as far as is fair.
type RebalancePlan struct {
	Moves    []Move         // ordered by role
	Unplaced []UnplacedRole // ordered by role
	Vacant   []string       // roles that are placed but have no leader now, ordered
	Nodes    []NodeShare    // the nodes that share the roles, ordered by name
}

// Move is the planned move of a role to another node.
type Move struct {
	Role     string
	From, To NodeID
}

// NodeShare is how many of the shared roles a node leads.
type NodeShare struct {
	Node          NodeID
	Name          string
	Before, After int
}

// PlanRebalance plans the moves for the named spreads, or for all spreads if there are no
// names. Members move a role only if they must; the plan also moves roles back to their
// preferred nodes. Nothing moves before [RebalancePlan.Apply]. The error matches
// [ErrUnknownSpread] if a spread does not exist, and tenure.ErrUnsupported if the store
// has no spreads.
func PlanRebalance(ctx context.Context, store Store, names ...string) (RebalancePlan, error) {
	plan, err := planRebalance(ctx, store, names)
	if err != nil {
		return RebalancePlan{}, fmt.Errorf("plan to rebalance: %w", err)
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
		if unmarked(&members[i]) {
			members[i].Status = Dead
		}
	}
	var plan RebalancePlan
	shares := map[uuid.UUID]*NodeShare{}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		roles := definitions[name]
		if len(roles) == 0 {
			continue // Leaders without roles would return all leaders
		}
		input := placement.Input{
			Nodes: participants(members, name), Roles: roles, Leaders: map[string]uuid.UUID{}, MoveToPreferred: true,
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
			input.Leaders[leader.Role] = leader.NodeID
		}
		plan.add(input, shares)
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

// add adds the moves of one spread.
func (p *RebalancePlan) add(input placement.Input, shares map[uuid.UUID]*NodeShare) {
	for _, node := range input.Nodes {
		if shares[node.ID] == nil {
			shares[node.ID] = &NodeShare{Node: node.ID, Name: node.Name}
		}
	}
	plan := placement.Make(input)
	p.Unplaced = append(p.Unplaced, unplacedRoles(plan)...)
	for role, to := range plan.Placed {
		from, led := input.Leaders[role]
		switch {
		case !led:
			p.Vacant = append(p.Vacant, role)
		case from != to:
			p.Moves = append(p.Moves, Move{role, from, to})
		}
		shares[to].After++
	}
	for _, node := range input.Leaders {
		if share := shares[node]; share != nil {
			share.Before++
		}
	}
}

const (
	// rebalanceBatch is how many roles are requested to move at a time.
	rebalanceBatch = 32
	// rebalancePause is the time between two batches, for the members to read the new
	// leaders.
	rebalancePause = 300 * time.Millisecond
	// rebalancePoll is the time between two reads of the leaders of a batch.
	rebalancePoll = 50 * time.Millisecond
)

// Apply moves the roles. It requests the handovers in batches, with by as the
// requester, and waits until other nodes lead the roles. progress, if not nil,
// is called with the number of roles requested so far. If ctx ends first, Apply
// returns an error. It skips a role whose leader has changed since the plan was
// made. If some roles cannot be requested, the error names them and the others
// still move.
func (p RebalancePlan) Apply(ctx context.Context, store Store, by string, progress func(moved int)) error {
	clock := clocks.System()
	var failed error
	moved := 0
	// Interleave the nodes' moves: otherwise a node could receive many roles before it has
	// handed some over.
	for batch := range slices.Chunk(interleave(p.Moves), rebalanceBatch) {
		if moved > 0 {
			wakeup.AwaitOn(ctx, clock, rebalancePause, nil)
		}
		failed = errors.Join(failed, applyBatch(ctx, store, clock, by, batch))
		if ctx.Err() != nil {
			return fmt.Errorf("rebalancing: %d of %d handovers were requested: %w", moved+len(batch), len(p.Moves), failed)
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

// interleave orders moves by turns of the pairs of nodes.
func interleave(moves []Move) []Move {
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

// applyBatch requests the handovers of a batch and waits until other nodes lead
// the roles. If a leader took a role back because its target was too slow, the
// handover is requested again.
func applyBatch(ctx context.Context, store Store, clock clocks.Clock, by string, batch []Move) error {
	asked := map[string]int64{} // by role: the term whose end was requested
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
				return !before // it had no leader to begin with
			case leader.NodeID != move.From:
				return true
			case before && term == leader.Term:
				return false // it has not ended yet
			}
			asked[move.Role] = leader.Term
			err := store.Request(ctx, tenure.Request{
				Kind: tenure.RequestHandOver, Role: move.Role, Term: leader.Term, Target: move.To, By: by,
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
		wakeup.AwaitOn(ctx, clock, rebalancePoll, nil)
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
