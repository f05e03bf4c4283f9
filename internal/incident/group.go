package incident

import (
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// grouping is the state of one call of Group. The indexes make it linear: there can be
// tens of thousands of changes.
type grouping struct {
	incidents []*Incident
	latest    map[cause]*Incident     // by the cause of its moves
	around    map[slot][]*Incident    // of nodes
	standing  map[string][]*Incident  // outages, by their roles
	outages   []*Incident             // oldest first
	changes   map[uuid.UUID][]*change // of nodes, oldest first
	joined    []*change               // of joined nodes, oldest first
	nodes     []change                // oldest first
}

// slot is a node in a period as long as the stops of a deployment may be apart.
type slot struct {
	node   uuid.UUID
	period int64
}

func periodOf(at time.Time) int64 { return at.UnixMicro() / deployment.Microseconds() }

// cause is the common cause of an incident's moves.
type cause struct {
	kind Kind
	by   string
	node Node   // the zero node for kinds of several nodes
	why  string // why a node gave roles up without a request
}

// change is a change of a node's status.
type change = history.NodeChange

func newGrouping(changes Changes) *grouping {
	g := &grouping{
		latest: map[cause]*Incident{}, around: map[slot][]*Incident{}, standing: map[string][]*Incident{},
		changes: map[uuid.UUID][]*change{}, nodes: slices.Clone(changes.Nodes),
	}
	slices.SortStableFunc(g.nodes, func(a, b history.NodeChange) int { return a.At.Compare(b.At) })
	for i := range g.nodes {
		n := &g.nodes[i]
		g.changes[n.Node] = append(g.changes[n.Node], n)
		if n.Previous == "" && n.Status != statusLeft {
			g.joined = append(g.joined, n)
		}
	}
	return g
}

// statusLeft is the status of a node after it has left.
const statusLeft = "left"

func (g *grouping) add(i *Incident) {
	g.incidents = append(g.incidents, i)
	for _, n := range i.Nodes {
		g.index(i, n)
	}
}

// index makes an incident known as one of a node.
func (g *grouping) index(i *Incident, node Node) {
	at := slot{node.ID, periodOf(i.Began)}
	g.around[at] = append(g.around[at], i)
}

func (g *grouping) addOutages(outages []history.Outage) {
	outages = slices.Clone(outages)
	slices.SortFunc(outages, func(a, b history.Outage) int { return a.Began.Compare(b.Began) })
	for _, o := range outages {
		i := &Incident{Kind: Outage, Began: o.Began, Ended: o.Ended, Outage: &o}
		g.outages = append(g.outages, i)
		for _, role := range o.Roles {
			g.standing[role] = append(g.standing[role], i)
		}
		g.add(i)
	}
}

// addMove adds a move to the incident of its cause.
func (g *grouping) addMove(m Move) {
	if i := g.outageOf(m); i != nil {
		i.Moves = append(i.Moves, m)
		return
	}
	kind, by, since := g.causeOf(m.From)
	node := Node{m.From.Node, m.From.NodeName}
	key := cause{kind: kind, by: by, node: node}
	switch kind {
	case Restart, Rebalance: // of several nodes
		key.node = Node{}
	case Change:
		key.why = m.From.Cause
	}
	i := g.latest[key]
	if i == nil || m.From.Ended.Sub(i.lastEnd()) > window || kind == Change && !i.gaveUpToo(m.From) {
		began := m.From.Ended
		if kind == Drain { // the work of its roles may have gone on
			began = since
		}
		i = &Incident{Kind: kind, Began: began, Nodes: []Node{node}, By: by, Moves: []Move{m}, cause: since}
		g.latest[key] = i
		g.add(i)
		return
	}
	if !slices.Contains(i.Nodes, node) {
		i.Nodes = append(i.Nodes, node)
		g.index(i, node)
	}
	i.Moves = append(i.Moves, m)
}

// gaveUpToo reports whether a node gave up a role together with those of the incident. A
// role that it has led again since then is another incident, and so is each request.
func (i *Incident) gaveUpToo(t history.Term) bool {
	return t.Reason == history.EndResigned && i.Moves[0].From.Reason == history.EndResigned && t.By == "" && !t.Began.After(i.Began)
}

// lastEnd is when the last term of the incident ended, or the last node stopped.
func (i *Incident) lastEnd() time.Time {
	last := i.Began
	if len(i.Moves) > 0 {
		last = i.Moves[len(i.Moves)-1].From.Ended
	}
	if i.stopped.After(last) {
		return i.stopped
	}
	return last
}

// outageOf returns the outage of a role, if the outage ended the term.
func (g *grouping) outageOf(m Move) *Incident {
	if !unclean(m.From.Reason) {
		return nil
	}
	for _, i := range slices.Backward(g.standing[m.From.Role]) {
		o := i.Outage
		if !m.From.Began.After(o.Began) && !m.From.Ended.Before(o.Began) && (m.To.Term == 0 || !m.To.Began.Before(o.Ended)) {
			return i
		}
	}
	return nil
}

func unclean(reason tenure.EndReason) bool {
	return reason == history.EndCrashed || reason == history.EndLeaseExpired || reason == history.EndServerChanged
}

// causeOf returns why a term ended, the requester of the end, and when, if recorded.
func (g *grouping) causeOf(t history.Term) (kind Kind, by string, since time.Time) {
	switch t.Reason {
	case history.EndCrashed:
		return Crash, "", since
	case history.EndLeaseExpired:
		return Silence, "", since
	case history.EndServerChanged:
		return Restart, "", since
	}
	if drain, drained := g.drainedAt(t.Node, t.Ended); drained && t.Reason != history.EndCompleted {
		if g.isStop(drain) {
			return Shutdown, "", drain.At
		}
		return Drain, drain.By, drain.At
	}
	switch {
	case t.Reason == history.EndShutdown:
		return Shutdown, t.By, since
	case t.Reason == history.EndHandedOver && t.By == "":
		return Rebalance, "", since
	default:
		return Change, t.By, since
	}
}

// drainedAt reports whether a node was draining at a time, with its last change of status.
func (g *grouping) drainedAt(node uuid.UUID, at time.Time) (last change, draining bool) {
	c := g.lastChange(node, at)
	if c == nil {
		return last, false
	}
	return *c, c.Status == string(tenure.StatusDraining)
}

// isStop reports whether a node was draining because it stopped, without a request.
func (g *grouping) isStop(drain change) bool {
	if drain.By != "" {
		return false
	}
	changes := g.changes[drain.Node]
	last := changes[len(changes)-1]
	return last.Status == statusLeft && last.At.Sub(drain.At) <= deployment
}

// addNode adds an incident for the death or the end of a node without a move of a role.
func (g *grouping) addNode(n history.NodeChange) {
	var kind Kind
	switch n.Status {
	case string(tenure.StatusDead):
		kind = Crash
		if n.Silent {
			kind = Silence
		}
	case statusLeft:
		kind = Shutdown
	case string(tenure.StatusDraining):
		kind = Drain
		if g.isStop(n) {
			kind = Shutdown
		}
	default:
		return
	}
	node := Node{n.Node, n.NodeName}
	if !g.inOutage(n.At) && !g.isKnown(node, n.At) {
		g.add(&Incident{Kind: kind, Began: n.At, Nodes: []Node{node}, By: n.By, cause: n.At})
	}
}

// isKnown reports whether a change of a node is part of an incident.
func (g *grouping) isKnown(node Node, at time.Time) bool {
	for period := periodOf(at) - 1; period <= periodOf(at)+1; period++ {
		for _, i := range g.around[slot{node.ID, period}] {
			if i.Kind != Change && i.Kind != Rebalance && at.Sub(i.Began).Abs() <= deployment {
				return true
			}
		}
	}
	return false
}

// inOutage reports whether a time is in an outage, or shortly after it.
func (g *grouping) inOutage(at time.Time) bool {
	next := sort.Search(len(g.outages), func(i int) bool { return g.outages[i].Began.After(at) })
	return next > 0 && g.outages[next-1].Covers(at)
}

// Covers reports whether a time is in the outage of an incident, or shortly after it, when nodes
// find others without a session.
func (i Incident) Covers(at time.Time) bool {
	return i.Outage != nil && !at.Before(i.Began) && at.Before(i.Outage.Ended.Add(window))
}

// mergeDeployments returns the incidents, with the stops of replaced nodes as one.
func (g *grouping) mergeDeployments() []*Incident {
	slices.SortStableFunc(g.incidents, func(a, b *Incident) int { return a.Began.Compare(b.Began) })
	all := make([]*Incident, 0, len(g.incidents))
	var stops []*Incident // of nodes in quick succession
	end := func() {
		if len(stops) > 1 && g.joinedAround(stops) >= len(stops) {
			all = append(all, merged(stops))
		} else {
			all = append(all, stops...)
		}
		stops = nil
	}
	for _, i := range g.incidents {
		if !i.isStop() || g.isShortLived(i) {
			all = append(all, i)
			continue
		}
		if len(stops) > 0 && i.Began.Sub(stops[len(stops)-1].Began) > deployment {
			end()
		}
		stops = append(stops, i)
	}
	end()
	return all
}

func (i *Incident) isStop() bool { return i.Kind == Shutdown || i.Kind == Drain }

// isShortLived reports whether the node of a stop had joined shortly before, and none joined
// under its name after it, such as the node of one command: no node replaced it.
func (g *grouping) isShortLived(stop *Incident) (short bool) {
	from, to := stop.Began.Add(-deployment), stop.Began.Add(deployment)
	after := sort.Search(len(g.joined), func(i int) bool { return g.joined[i].At.After(from) })
	for _, n := range g.joined[after:] {
		switch {
		case len(stop.Nodes) != 1 || n.At.After(to):
			return short
		case n.Node == stop.Nodes[0].ID:
			short = true
		case short && n.NodeName == stop.Nodes[0].Name:
			return false
		}
	}
	return short
}

// joinedAround returns how many nodes joined while others stopped, and stayed: a short-lived
// node replaces no other.
func (g *grouping) joinedAround(stops []*Incident) (joined int) {
	stopped := map[uuid.UUID]bool{}
	for _, i := range stops {
		for _, node := range i.Nodes {
			stopped[node.ID] = true
		}
	}
	from, to := stops[0].Began.Add(-deployment), stops[len(stops)-1].Began.Add(deployment)
	after := sort.Search(len(g.joined), func(i int) bool { return g.joined[i].At.After(from) })
	for _, n := range g.joined[after:] {
		if !n.At.Before(to) {
			break
		}
		if !stopped[n.Node] && !g.goneBy(n.Node, to) {
			joined++
		}
	}
	return joined
}

// goneBy reports whether a node had left or was dead at a time.
func (g *grouping) goneBy(node uuid.UUID, at time.Time) bool {
	last := g.lastChange(node, at)
	return last != nil && (last.Status == statusLeft || last.Status == string(tenure.StatusDead))
}

// lastChange returns the last change of a node's status until a time, or nil.
func (g *grouping) lastChange(node uuid.UUID, at time.Time) *change {
	changes := g.changes[node]
	after := sort.Search(len(changes), func(i int) bool { return changes[i].At.After(at) })
	if after == 0 {
		return nil
	}
	return changes[after-1]
}

func merged(stops []*Incident) *Incident {
	all := &Incident{Kind: Deployment, Began: stops[0].Began, By: stops[0].By, cause: stops[0].cause, stopped: stops[len(stops)-1].Began}
	seen := map[Node]bool{}
	for _, i := range stops {
		all.Moves = append(all.Moves, i.Moves...)
		for _, node := range i.Nodes {
			if !seen[node] {
				seen[node] = true
				all.Nodes = append(all.Nodes, node)
			}
		}
		if i.By != all.By {
			all.By = ""
		}
	}
	return all
}
