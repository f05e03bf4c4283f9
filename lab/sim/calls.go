package sim

import (
	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/simcalls"
)

// callLog records what the simulated database receives and answers, for a real server to
// repeat. A nil log records nothing. Its methods are called with World.mu held.
type callLog struct {
	calls   []simcalls.Call
	stopped bool
	quiet   int // watches that saw nothing
}

// quietWatches is how many watches that see nothing are recorded as one.
const quietWatches = 16

// called records a call.
func (s *server) called(c simcalls.Call) {
	if log := s.calls; log != nil && !log.stopped {
		c.Clock, c.Life = s.clock()-clockBase, s.lifeOf(s.started)
		log.calls = append(log.calls, c)
	}
}

// stopCalls ends the record: what follows has no counterpart on one real server.
func (s *server) stopCalls() {
	s.called(simcalls.Call{Kind: simcalls.Incomplete})
	if s.calls != nil {
		s.calls.stopped = true
	}
}

func (s *server) lifeOf(i identity) simcalls.Life {
	return simcalls.Life{Timeline: i.timeline, Boot: i.boot, New: s.life.byMigration}
}

func (s *server) rowOf(row *nodeRow) simcalls.Node {
	return simcalls.Node{
		ID: row.info.ID, Session: row.incarnation, Lease: row.lease, Heartbeat: row.lastHeartbeat - clockBase,
		Dead: row.dead, DiedAt: row.diedAt - clockBase, Trusted: row.trustUntil, Life: s.lifeOf(row.life),
	}
}

// opened records that a session has joined.
func (b *backend) opened() {
	b.server.called(simcalls.Call{
		Kind: simcalls.Opens, Session: b.incarnation, Previous: b.client.opening.PreviousIncarnation,
		Nodes: []simcalls.Node{b.server.rowOf(b.row())}, Margin: b.timing.Margin, Settling: b.timing.Settle > 0,
	})
}

// about are roles with the answers about them.
func (s *server) about(roles []tenure.Role, answers []tenure.AcquireResult) []simcalls.Role {
	found := make([]simcalls.Role, len(roles))
	for i, a := range answers {
		found[i] = simcalls.Role{
			Name: roles[i].Name(), Term: a.Term, Outcome: a.Outcome, RetryIn: a.RetryIn, Led: a.Led, Fenced: a.Fenced,
			Previous: a.Previous, Vacancy: a.PrecedingVacancy,
		}
		if a.Outcome == tenure.OutcomeGranted {
			found[i].Begun = a.AcquiredAt.Sub(s.world.start)
		}
	}
	return found
}

// tried records an attempt to lock roles.
func (b *backend) tried(candidates []tenure.AcquireRequest, answers []tenure.AcquireResult) {
	if b.server.calls == nil {
		return
	}
	roles := make([]tenure.Role, len(candidates))
	for i, c := range candidates {
		roles[i] = c.Role
	}
	found := b.server.about(roles, answers)
	for i, c := range candidates {
		found[i].YieldTerm, found[i].YieldFor = c.YieldTerm, c.YieldFor
	}
	b.server.called(simcalls.Call{Kind: simcalls.Locks, Session: b.incarnation, Roles: found})
}

// recordRows records a call about roles as their rows are now.
func (b *backend) recordRows(kind simcalls.Kind, roles []tenure.Role) {
	if b.server.calls == nil {
		return
	}
	found := make([]simcalls.Role, len(roles))
	for i, role := range roles {
		found[i] = b.server.recorded(role.Name())
	}
	b.server.called(simcalls.Call{Kind: kind, Session: b.incarnation, Roles: found})
}

// recorded is the row of a role.
func (s *server) recorded(name string) simcalls.Role {
	row := s.roles[name]
	found := simcalls.Role{
		Name: name, Term: row.term, Reason: row.reason, Target: row.reservedFor, Node: row.node, Lease: row.lease, Over: row.ended,
		Begun: row.acquired - clockBase, EndedAt: row.endedAt - clockBase, Unobserved: row.unobserved,
		Life: s.lifeOf(row.server), ReservedUntil: row.reservedUntil - clockBase,
	}
	if row.holder != nil {
		found.Session = row.holder.incarnation
	}
	return found
}

// recordTables records the tables after a crash or a promotion.
func (s *server) recordTables() {
	if s.calls == nil {
		return
	}
	c := simcalls.Call{Kind: simcalls.Tables}
	for _, name := range s.world.roleNames {
		if s.roles[name] != nil {
			c.Roles = append(c.Roles, s.recorded(name))
		}
	}
	for _, row := range s.inOrder() {
		c.Nodes = append(c.Nodes, s.rowOf(row))
	}
	s.called(c)
}

// freed records that the lock of a backend was freed.
func (s *server) freed(b *backend, id lockID) {
	c := simcalls.Call{Kind: simcalls.Frees, Session: b.incarnation}
	if role := s.roleOf(id); role != "" {
		c.Roles = []simcalls.Role{{Name: role}}
	} else if id != nodeLock(b.incarnation) {
		return // of a role that was never led, or of another installation
	}
	s.called(c)
}

// looked records what the watch of b saw of its predecessors.
func (b *backend) looked(event string, died int64) {
	s := b.server
	if s.calls == nil {
		return
	}
	if event == "" {
		if s.calls.quiet++; s.calls.quiet%quietWatches != 0 {
			return
		}
	}
	c := simcalls.Call{Kind: simcalls.Watches, Session: b.incarnation, Margin: b.timing.Margin, Event: event, Died: died}
	if b.stale != nil {
		c.Stale = b.stale.incarnation
	}
	for _, row := range s.inOrder() {
		if row.session != nil && row.session.client.process.machine.watchBroken() {
			c.Blind = append(c.Blind, row.incarnation)
		}
		c.Asked = append(c.Asked, row.incarnation)
		c.AnyEnds = c.AnyEnds || s.locks[nodeLock(row.incarnation)] == nil
	}
	s.called(c)
}

// beginning records an attempt to begin terms before it ends transactions, and returns
// what completes the record.
func (b *backend) beginning() (complete func([]simcalls.Role)) {
	log := b.server.calls
	if log == nil || log.stopped {
		return func([]simcalls.Role) {}
	}
	b.server.called(simcalls.Call{Kind: simcalls.Begins, Session: b.incarnation})
	place := len(log.calls) - 1
	return func(roles []simcalls.Role) { log.calls[place].Roles = roles }
}

// ending records a release.
func (b *backend) ending(releases []tenure.ReleaseRequest) {
	if b.server.calls == nil {
		return
	}
	found := make([]simcalls.Role, len(releases))
	for i, r := range releases {
		found[i] = simcalls.Role{Name: r.Role.Name(), Term: r.Term, Reason: r.Reason, Target: r.Target, Reserve: r.Reservation}
		row := b.server.roles[r.Role.Name()]
		found[i].Over = row != nil && r.Term != 0 && row.term == r.Term && row.holder == b && !row.ended
	}
	b.server.called(simcalls.Call{Kind: simcalls.Ends, Session: b.incarnation, Roles: found})
}
