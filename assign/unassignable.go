package assign

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cluster"
)

// maxCounted is the maximum number of counted waiting rows.
const maxCounted = 1000

// Reason says why rows cannot be assigned now.
type Reason string

// The reasons.
const (
	NoNode    Reason = "no_node"    // no node that accepts rows has the capability
	NotActive Reason = "not_active" // the nodes with the capability are draining or joining
	Full      Reason = "full"       // the nodes with the capability have Config.MaxPerNode unfinished rows each
)

// Unassignable is a group of pending rows that cannot be assigned now.
type Unassignable struct {
	Capability string
	Rows       int // counted up to 1000
	Reason     Reason
}

// Unassignable returns, by capability, the pending rows that cannot be assigned now, and
// why. It reads at most 1000 capabilities of pending rows. Any member can call it, whether
// it leads or not. The leader also logs capabilities without a node, whenever they change.
func (a *Assigner) Unassignable(ctx context.Context) ([]Unassignable, error) {
	table, err := readTable(ctx, a.database, a.config)
	if err != nil {
		return nil, err
	}
	now, err := readSituation(ctx, a.database, table, a.config)
	if err != nil {
		return nil, err
	}
	nodes, err := a.member.Registry().Nodes(ctx)
	if err != nil {
		return nil, err
	}
	reasons := a.config.reasons(now, nodes)
	rows, err := a.database.Query(ctx, table.sql(countWaiting), fresh, a.config.States.Pending, sortedKeys(reasons), maxCounted)
	if err != nil {
		return nil, fmt.Errorf("count rows that cannot be assigned: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u Unassignable, err error) {
		err = row.Scan(&u.Capability, &u.Rows)
		u.Reason = reasons[u.Capability]
		return u, err
	})
	if err != nil {
		return nil, fmt.Errorf("count rows that cannot be assigned: %w", err)
	}
	return slices.DeleteFunc(all, func(u Unassignable) bool { return u.Rows == 0 }), nil
}

// reasons returns the capabilities of waiting rows without free capacity, and why.
func (c Config) reasons(now situation, nodes []cluster.NodeInfo) map[string]Reason {
	places := newPlacement(c.MaxPerNode, c.candidates(nodes, now.shares))
	reasons := map[string]Reason{}
	for _, capability := range now.waiting {
		switch {
		case places.free(capability) > 0:
		case len(places.able(capability)) > 0:
			reasons[capability] = Full
		case slices.ContainsFunc(nodes, func(n cluster.NodeInfo) bool {
			return n.Status != cluster.Dead && n.HasRole(c.WorkerRole) && (capability == anyNode || n.HasCapability(capability))
		}):
			reasons[capability] = NotActive
		default:
			reasons[capability] = NoNode
		}
	}
	return reasons
}

// reportUnable logs the capabilities of waiting rows without a node, if they have changed.
func (p *pass) reportUnable(now situation, nodes []cluster.NodeInfo) {
	reasons := p.config.reasons(now, nodes)
	unable := slices.DeleteFunc(sortedKeys(reasons), func(capability string) bool { return reasons[capability] == Full })
	if slices.Equal(unable, p.reportedUnable) {
		return
	}
	p.reportedUnable = unable
	if len(unable) == 0 {
		p.log.Info("all pending rows can be assigned again")
		return
	}
	const most = 10
	p.log.Warn("rows wait for capabilities that no active node has",
		"capabilities", len(unable), "first", unable[:min(len(unable), most)])
}
