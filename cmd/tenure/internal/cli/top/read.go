package top

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/roster"
	"github.com/exactly-one/tenure/postgres"
)

// maxRoles is how many roles are read.
const maxRoles = 10_000

// role is the last term of a role, and its leader if it still leads.
type role struct {
	last   history.Term
	leader *tenure.Leader
}

// snapshot is the database's state at one time.
type snapshot struct {
	roles   []role          // by name
	members []tenure.Member // by name; the dead first
	leads   map[string]int  // the number of roles that a node leads, by its id
	drains  bool            // there is a registry of nodes, which can be drained
	outage  *history.Outage // the latest that ended within outageAge, or nil
	faults  []roles.Fault   // of schedules, processors and alerts
}

// faultsInterval is the time between two reads of schedules, processors and alerts, whose
// figures change without a notification.
const faultsInterval = 2 * time.Second

// reader reads snapshots.
type reader struct {
	backend connect.Backend
	work    *roles.Work // nil on leases
	faults  []roles.Fault
	at      time.Time // when faults were read
}

// read reads everything. Only one goroutine calls it.
func (r *reader) read(ctx context.Context) (snapshot, error) {
	s, err := read(ctx, r.backend)
	if err == nil && time.Since(r.at) >= faultsInterval {
		r.faults, r.at = r.work.Faults(ctx), time.Now()
	}
	s.faults = r.faults
	return s, err
}

// read reads the roles and the nodes.
func read(ctx context.Context, backend connect.Backend) (snapshot, error) {
	terms, err := backend.History(ctx, history.Query{Latest: true, Limit: maxRoles})
	if err != nil {
		return snapshot{}, err
	}
	members, leaders, err := readNodes(ctx, backend)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{members: members, leads: map[string]int{}}
	if sessions, ok := backend.(*postgres.Backend); ok {
		s.drains = true
		if s.outage, err = readOutage(ctx, sessions); err != nil {
			return snapshot{}, err
		}
	}
	byRole := map[string]*tenure.Leader{}
	for i, leader := range leaders {
		byRole[leader.Role] = &leaders[i]
		s.leads[leader.NodeID.String()]++
	}
	for _, term := range terms {
		if term.Retired.IsZero() {
			s.roles = append(s.roles, role{term, byRole[term.Role]})
		}
	}
	now := time.Now()
	slices.SortFunc(s.roles, func(a, b role) int {
		return cmp.Or(cmp.Compare(a.urgency(now), b.urgency(now)), cmp.Compare(a.last.Role, b.last.Role))
	})
	slices.SortStableFunc(s.members, func(a, b tenure.Member) int {
		return cmp.Or(compareDead(a, b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return s, nil
}

// urgency orders roles: first without a leader, then led, then at rest.
func (r role) urgency(now time.Time) int {
	switch {
	case r.leader != nil:
		return 1
	case r.last.AtRest(now):
		return 2
	}
	return 0
}

// outageAge is how long an outage is shown after its end.
const outageAge = time.Hour

// readOutage returns the latest outage; none if the user may not read it.
func readOutage(ctx context.Context, backend *postgres.Backend) (*history.Outage, error) {
	outages, err := backend.Outages(ctx, history.Query{Since: time.Now().Add(-outageAge), Limit: 1})
	if errors.Is(err, dberr.ErrPrivilege) {
		err = nil
	}
	if err != nil || len(outages) == 0 {
		return nil, err
	}
	return &outages[0], nil
}

// readNodes reads the nodes and the leaders. A database without a registry knows only
// the names of nodes.
func readNodes(ctx context.Context, backend connect.Backend) ([]tenure.Member, []tenure.Leader, error) {
	if source, ok := backend.(roster.Source); ok {
		found, err := roster.Read(ctx, source)
		if err != nil {
			return nil, nil, err
		}
		return found.Current(), found.Leaders, nil
	}
	nodes, err := backend.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	var members []tenure.Member
	for _, node := range nodes {
		m := tenure.Member{NodeInfo: node}
		m.Status = tenure.StatusActive
		members = append(members, m)
	}
	leaders, err := backend.Leaders(ctx)
	return members, leaders, err
}

// compareDead orders dead nodes before others.
func compareDead(a, b tenure.Member) int {
	switch {
	case roster.Dead(a) == roster.Dead(b):
		return 0
	case roster.Dead(a):
		return -1
	}
	return 1
}
