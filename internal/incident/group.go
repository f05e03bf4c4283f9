package incident

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// grouping is the state of one call of Group.
type grouping struct {
	nodes     []history.NodeChange // oldest first
	incidents []*Incident
}

func newGrouping(changes Changes) *grouping {
	g := &grouping{nodes: slices.Clone(changes.Nodes)}
	slices.SortStableFunc(g.nodes, func(a, b history.NodeChange) int { return a.At.Compare(b.At) })
	return g
}

func (g *grouping) add(i *Incident) { g.incidents = append(g.incidents, i) }

func (g *grouping) addOutage(o history.Outage) {
	g.add(&Incident{Kind: Outage, Began: o.Began, Ended: o.Ended, Outage: &o})
}

// addMove adds a move to the incident of its cause.
func (g *grouping) addMove(m Move) {
	if i := g.outageOf(m); i != nil {
		i.Moves = append(i.Moves, m)
		return
	}
	kind, by := g.causeOf(m.From)
	node := Node{m.From.Node, m.From.NodeName}
	shared := kind == Restart || kind == Rebalance // of several nodes
	for _, i := range slices.Backward(g.incidents) {
		if i.Kind != kind || i.By != by || kind == Change || m.From.Ended.Sub(i.lastEnd()) > window {
			continue
		}
		if shared && !slices.Contains(i.Nodes, node) {
			i.Nodes = append(i.Nodes, node)
		}
		if slices.Contains(i.Nodes, node) {
			i.Moves = append(i.Moves, m)
			return
		}
	}
	g.add(&Incident{Kind: kind, Began: m.From.Ended, Nodes: []Node{node}, By: by, Moves: []Move{m}})
}

// lastEnd is when the last term of the incident ended.
func (i *Incident) lastEnd() time.Time {
	if len(i.Moves) == 0 {
		return i.Began
	}
	return i.Moves[len(i.Moves)-1].From.Ended
}

// outageOf returns the outage in which a role stood still, if that ended the term.
func (g *grouping) outageOf(m Move) *Incident {
	for _, i := range g.incidents {
		o := i.Outage
		if o != nil && slices.Contains(o.Roles, m.From.Role) && !m.From.Began.After(o.Began) && !m.From.Ended.Before(o.Began) &&
			unclean(m.From.Reason) && (m.To.Term == 0 || !m.To.Began.Before(o.Ended)) {
			return i
		}
	}
	return nil
}

func unclean(reason tenure.EndReason) bool {
	return reason == history.EndCrashed || reason == history.EndLeaseExpired || reason == history.EndServerChanged
}

// causeOf returns why a term ended, and who asked for that.
func (g *grouping) causeOf(t history.Term) (Kind, string) {
	switch t.Reason {
	case history.EndCrashed:
		return Crash, ""
	case history.EndLeaseExpired:
		return Silence, ""
	case history.EndServerChanged:
		return Restart, ""
	}
	if drained, by := g.drainedAt(t.Node, t.Ended); drained {
		return Drain, by
	}
	switch {
	case t.Reason == history.EndShutdown:
		return Shutdown, t.By
	case t.Reason == history.EndHandedOver && t.By == "":
		return Rebalance, ""
	default:
		return Change, t.By
	}
}

// drainedAt reports whether a node was draining at a time, and who asked for that.
func (g *grouping) drainedAt(node uuid.UUID, at time.Time) (draining bool, by string) {
	for _, n := range g.nodes {
		if n.Node == node && !n.At.After(at) {
			draining, by = n.Status == string(tenure.StatusDraining), n.By
		}
	}
	return draining, by
}

// addNode adds an incident for the death or the end of a node that moved no role.
func (g *grouping) addNode(n history.NodeChange) {
	var kind Kind
	switch n.Status {
	case string(tenure.StatusDead):
		kind = Crash
	case "left":
		kind = Shutdown
	case string(tenure.StatusDraining):
		kind = Drain
	default:
		return
	}
	node := Node{n.Node, n.NodeName}
	known := func(i *Incident) bool {
		return i.Kind == Outage && !n.At.Before(i.Began) && n.At.Before(i.Ended.Add(window)) ||
			slices.Contains(i.Nodes, node) && i.Kind != Change && i.Kind != Rebalance && n.At.Sub(i.Began).Abs() <= deployment
	}
	if !slices.ContainsFunc(g.incidents, known) {
		g.add(&Incident{Kind: kind, Began: n.At, Nodes: []Node{node}, By: n.By})
	}
}

// mergeDeployments returns the incidents, with the stops of nodes that others replaced
// as one.
func (g *grouping) mergeDeployments() []Incident {
	slices.SortStableFunc(g.incidents, func(a, b *Incident) int { return a.Began.Compare(b.Began) })
	var all []Incident
	for len(g.incidents) > 0 {
		stops := g.takeStops()
		if len(stops) > 1 && g.joinedAround(stops) >= len(stops) {
			all = append(all, merged(stops))
			continue
		}
		for _, i := range stops {
			all = append(all, *i)
		}
	}
	return all
}

// takeStops removes the first incident, and with it the stops of other nodes that
// followed soon.
func (g *grouping) takeStops() []*Incident {
	first := g.incidents[0]
	g.incidents = g.incidents[1:]
	taken := []*Incident{first}
	if !first.isStop() {
		return taken
	}
	last := first
	g.incidents = slices.DeleteFunc(g.incidents, func(i *Incident) bool {
		if !i.isStop() || i.Began.Sub(last.Began) > deployment {
			return false
		}
		taken, last = append(taken, i), i
		return true
	})
	return taken
}

func (i *Incident) isStop() bool { return i.Kind == Shutdown || i.Kind == Drain }

// joinedAround returns how many nodes were new while others stopped.
func (g *grouping) joinedAround(stops []*Incident) (joined int) {
	from, to := stops[0].Began.Add(-deployment), stops[len(stops)-1].Began.Add(deployment)
	for _, n := range g.nodes {
		if n.Previous == "" && n.Status != "left" && n.At.After(from) && n.At.Before(to) {
			joined++
		}
	}
	return joined
}

func merged(stops []*Incident) Incident {
	all := Incident{Kind: Deployment, Began: stops[0].Began, By: stops[0].By}
	for _, i := range stops {
		all.Moves = append(all.Moves, i.Moves...)
		for _, node := range i.Nodes {
			if !slices.Contains(all.Nodes, node) {
				all.Nodes = append(all.Nodes, node)
			}
		}
		if i.By != all.By {
			all.By = ""
		}
	}
	return all
}
