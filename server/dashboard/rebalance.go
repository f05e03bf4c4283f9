package dashboard

import (
	"context"
	"fmt"

	"github.com/exactly-one/tenure/cluster"
)

// rebalanced is the result of a request to rebalance.
type rebalanced struct {
	sharing int  // nodes that share roles
	planned int  // roles to move
	late    bool // some have not moved yet
}

// rebalance moves shared roles to the best placement. It is no error if roles have not
// moved when ctx ends.
func (d *Dashboard) rebalance(ctx context.Context, by string) (rebalanced, error) {
	plan, err := cluster.PlanRebalance(ctx, d.config.Backend)
	result := rebalanced{sharing: len(plan.Nodes), planned: len(plan.Moves)}
	if err != nil || result.planned == 0 {
		return result, err
	}
	d.recordAction(ctx, by, "cluster", d.config.Title, "rebalance", count(result.planned, "role moves", "roles move"))
	if err = plan.Apply(ctx, d.config.Backend, by, nil); err != nil && ctx.Err() != nil {
		result.late, err = true, nil
	}
	return result, err
}

// String describes the result in a sentence.
func (r rebalanced) String() string {
	switch {
	case r.sharing == 0:
		return "No node shares roles."
	case r.planned == 0:
		return "Every shared role is where it should be."
	case r.late:
		return fmt.Sprintf("Not all of %s have moved yet. Requested moves continue; rebalance again for the others.", count(r.planned, "role", "roles"))
	default:
		return count(r.planned, "role has", "roles have") + " moved."
	}
}
