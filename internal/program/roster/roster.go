// Package roster reads the nodes and leaders of a cluster, for the command line and the
// HTTP interface.
package roster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/record"
)

// Source is a database with a registry of nodes.
type Source interface {
	Members(ctx context.Context) ([]tenure.Member, error)
	Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error)
}

// Roster is the result of one reading.
type Roster struct {
	// Members are first the unreplaced dead nodes, then the living ones, then the
	// replaced ones, each by their sessions, the oldest first.
	Members []tenure.Member
	Leaders []tenure.Leader // by role
	// Unplaced are shared roles without a living node allowed to lead them, if read too.
	Unplaced []cluster.UnplacedRole

	leads    map[uuid.UUID][]string
	replaced map[uuid.UUID]bool
}

// Read reads the roster. A node counts as dead after more than its lease of silence,
// whether another node has noticed or not.
func Read(ctx context.Context, source Source) (*Roster, error) {
	members, err := source.Members(ctx)
	if err != nil {
		return nil, err
	}
	leaders, err := source.Leaders(ctx)
	if err != nil {
		return nil, err
	}
	markSilent(members)
	changes, err := readChanges(ctx, source, members)
	if err != nil {
		return nil, err
	}
	return New(members, leaders, changes), nil
}

// maxChanges bounds the changes of nodes that are read to find out who left.
const maxChanges = 10_000

// readChanges reads the changes of nodes since the first death of a node that no living one
// has replaced; none if there is no such node.
func readChanges(ctx context.Context, source Source, members []tenure.Member) ([]history.NodeChange, error) {
	recorder, ok := source.(interface {
		NodeHistory(ctx context.Context, query history.Query) ([]history.NodeChange, error)
	})
	var since time.Time
	replaced := FindReplaced(members, nil)
	for _, m := range members {
		if Dead(m) && !replaced[m.ID] && (since.IsZero() || m.LastHeartbeat.Before(since)) {
			since = m.LastHeartbeat
		}
	}
	if !ok || since.IsZero() {
		return nil, nil
	}
	changes, err := recorder.NodeHistory(ctx, history.Query{Since: since, Limit: maxChanges})
	if errors.Is(err, dberr.ErrPrivilege) { // the nodes and the terms suffice for all others
		return nil, nil
	}
	return changes, err
}

// ReadAll is Read, and also finds the shared roles without a place.
func ReadAll(ctx context.Context, source Source) (*Roster, error) {
	found, err := Read(ctx, source)
	if err != nil {
		return nil, err
	}
	store, ok := source.(cluster.Store)
	if !ok {
		return found, nil
	}
	plan, err := cluster.PlanRebalance(ctx, store)
	if err != nil && !errors.Is(err, tenure.ErrUnsupported) { // else the backend has no shared roles
		return nil, err
	}
	found.Unplaced = plan.Unplaced
	return found, nil
}

// New makes a roster of members and leaders. It keeps both slices. changes shows nodes that
// have left.
func New(members []tenure.Member, leaders []tenure.Leader, changes []history.NodeChange) *Roster {
	r := &Roster{Members: members, Leaders: leaders, leads: map[uuid.UUID][]string{}}
	markSilent(members)
	r.replaced = FindReplaced(members, changes)
	slices.SortStableFunc(r.Members, func(a, b tenure.Member) int { return cmp.Compare(r.rank(a), r.rank(b)) })
	for _, leader := range leaders {
		r.leads[leader.NodeID] = append(r.leads[leader.NodeID], leader.Role)
	}
	return r
}

// markSilent marks nodes as dead that have been silent for longer than their leases.
func markSilent(members []tenure.Member) {
	for i := range members {
		if m := &members[i]; m.SilentFor > m.Lease {
			m.Status, m.StatusBy = tenure.StatusDead, ""
		}
	}
}

// FindReplaced returns the dead nodes that came back: a node that lives, or has left by these
// changes, has the same name and started after the last heartbeat of the dead one. It replaces
// one dead node and those that died before it.
func FindReplaced(members []tenure.Member, changes []history.NodeChange) map[uuid.UUID]bool {
	dead, live := map[string][]tenure.Member{}, map[string][]tenure.Member{}
	for _, m := range members {
		if Dead(m) {
			dead[m.Name] = append(dead[m.Name], m)
		} else {
			live[m.Name] = append(live[m.Name], m)
		}
	}
	for _, m := range left(changes) {
		live[m.Name] = append(live[m.Name], m)
	}
	replaced := map[uuid.UUID]bool{}
	for name, gone := range dead {
		// Nodes that ran at the same time do not replace one another. So as many nodes are
		// missing as ran together, less the ones that started later.
		slices.SortFunc(gone, func(a, b tenure.Member) int { return b.LastHeartbeat.Compare(a.LastHeartbeat) })
		heirs := slices.Clone(live[name])
		slices.SortFunc(heirs, func(a, b tenure.Member) int { return b.StartedAt.Compare(a.StartedAt) })
		for _, m := range gone {
			heir := slices.IndexFunc(heirs, func(h tenure.Member) bool { return !h.StartedAt.Before(m.LastHeartbeat) })
			if heir < 0 {
				continue
			}
			replaced[m.ID] = true
			heirs[heir] = m // the node that m replaced is replaced too
		}
	}
	return replaced
}

// statusLeft is that of a node that went, in a change.
const statusLeft = "left"

// left returns the nodes that came and left. A node has a new id each time.
func left(changes []history.NodeChange) (gone []tenure.Member) {
	came := map[uuid.UUID]time.Time{}
	for _, c := range changes {
		if c.Previous == "" {
			came[c.Node] = c.At
		}
	}
	for _, c := range changes {
		if at, known := came[c.Node]; known && c.Status == statusLeft {
			gone = append(gone, tenure.Member{NodeInfo: tenure.NodeInfo{ID: c.Node, Name: c.NodeName}, StartedAt: at})
		}
	}
	return gone
}

// Replaced reports whether a node is dead and came back, see FindReplaced.
func (r *Roster) Replaced(m tenure.Member) bool { return r.replaced[m.ID] }

// rank orders the nodes.
func (r *Roster) rank(m tenure.Member) int {
	switch {
	case r.Replaced(m):
		return 2
	case Dead(m):
		return 0
	}
	return 1
}

// Current returns the nodes without the replaced ones.
func (r *Roster) Current() []tenure.Member {
	return r.where(func(m tenure.Member) bool { return !r.Replaced(m) })
}

// Leads returns the roles led by a node, by name.
func (r *Roster) Leads(node uuid.UUID) []string { return r.leads[node] }

// Member returns the node with an id.
func (r *Roster) Member(id uuid.UUID) (tenure.Member, bool) {
	for _, m := range r.Members {
		if m.ID == id {
			return m, true
		}
	}
	return tenure.Member{}, false
}

// Node returns the record of a node of the roster.
func (r *Roster) Node(m tenure.Member) record.Node {
	node := record.NewNode(m, r.leads[m.ID])
	node.Replaced = r.Replaced(m)
	return node
}

// Record returns the record of the whole cluster under its display name.
func (r *Roster) Record(name string) record.Cluster {
	all := record.Cluster{
		Name: name, Nodes: []record.Node{}, Leaders: []record.RoleLeader{}, Counts: r.Counts(), Unplaced: record.NewUnplaced(r.Unplaced),
	}
	for _, m := range r.Members {
		all.Nodes = append(all.Nodes, r.Node(m))
	}
	for i := range r.Leaders {
		all.Leaders = append(all.Leaders, record.RoleLeader{
			Role: r.Leaders[i].Role, Leader: record.NewLeader(&r.Leaders[i]),
		})
	}
	return all
}

// Counts counts the nodes.
func (r *Roster) Counts() record.Counts {
	counts := record.Counts{Total: len(r.Members)}
	for _, m := range r.Members {
		if r.Replaced(m) {
			counts.Replaced++
			continue
		}
		switch m.Status {
		case tenure.StatusActive:
			counts.Active++
		case tenure.StatusDraining:
			counts.Draining++
		case tenure.StatusJoining:
			counts.Joining++
		case tenure.StatusDead:
			counts.Dead++
		}
	}
	return counts
}
