package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/internal/steps"
)

// roleRow is the record of a role: its last term.
type roleRow struct {
	key        tenure.LockKey
	term       int64 // 0 before the first
	node       uuid.UUID
	holder     *backend
	acquired   time.Duration
	ended      bool
	endedAt    time.Duration
	reason     tenure.EndReason
	unobserved bool // the end: no node saw it
	server     identity
	lease      time.Duration // of the holder

	reservedFor   uuid.UUID
	reservedUntil time.Duration
}

// isReserved reports whether a role is reserved, by the clock of the server, which may have
// been ahead when the reservation was made.
func (s *server) isReserved(r *roleRow) bool {
	now, length := s.clock(), r.reservedUntil-r.endedAt
	return r.reservedUntil > now && (now >= r.endedAt-length || s.defects.FalseReservations)
}

// clean reports whether the holder of the term ended it itself.
func (r *roleRow) clean() bool {
	switch r.reason {
	case history.EndCrashed, history.EndLeaseExpired, history.EndServerChanged:
		return false
	}
	return true
}

// tryRoles tries to lock roles: the first statement of acquiring them.
func (b *backend) tryRoles(candidates []tenure.AcquireRequest) []tenure.AcquireResult {
	attempts := make([]tenure.AcquireResult, len(candidates))
	for i, c := range candidates {
		attempts[i] = b.tryRole(c)
	}
	b.tried(candidates, attempts)
	return attempts
}

func (b *backend) tryRole(c tenure.AcquireRequest) tenure.AcquireResult {
	s, now := b.server, b.server.clock()
	key := c.Role.LockKey(b.installed)
	row := s.roles[c.Role.Name()]
	if row == nil {
		row = &roleRow{key: key, ended: true}
		s.roles[c.Role.Name()] = row
	}
	if row.key != key {
		return tenure.AcquireResult{Outcome: tenure.OutcomeFailed,
			Err: fmt.Errorf("%w: %s is recorded, not %s", tenure.ErrKeyMismatch, row.key, key)}
	}
	if s.isReserved(row) && row.reservedFor != b.node.ID {
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: row.reservedUntil - now}
	}
	if c.YieldFor > 0 && c.YieldTerm == row.term && !s.isReserved(row) {
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: c.YieldFor}
	}
	if s.tryLock(b, b.roleLock(c.Role)) {
		return tenure.AcquireResult{Outcome: tenure.OutcomePending}
	}
	b.reapIfWatchDown()
	attempt := tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
	if holder := row.holder; row.term > 0 && !row.ended && holder != b && holder != nil {
		node := s.nodes[holder.node.ID]
		attempt.Led = s.holds(holder, nodeLock(holder.incarnation)) && node != nil && node.incarnation == holder.incarnation && node.silentFor(s) < node.lease
	}
	if c.Recovering {
		attempt.Holder = row.node
	}
	return attempt
}

// reapIfWatchDown makes the session itself check for silent nodes, at its check
// intervals, while its watch connection is down.
func (b *backend) reapIfWatchDown() {
	now := b.server.world.now()
	if !b.client.process.machine.watchBroken() || b.reapedAt > 0 && now-b.reapedAt < b.timing.CheckInterval {
		return
	}
	b.reapedAt = max(1, now)
	b.reapSilent()
}

// nearest is how many nodes before its own each heartbeat checks.
const nearest = 3

// reapIfSilent makes the session itself check for silent nodes after a heartbeat that
// saw one: the watch that should end its session may be silent as well.
func (b *backend) reapIfSilent() {
	s, now := b.server, b.server.world.now()
	if s.defects.HeartbeatsDoNotLook {
		return
	}
	due := b.stale != nil && !b.stale.ended && b.stale.beatAt+b.stale.timing.Lease+b.timing.Margin < now
	for i, row := range s.predecessors(b) {
		silent := row.silentFor(s)
		due = due || i < nearest && (row.lease+b.timing.Margin < silent || silent < -row.lease)
	}
	if due && b.reapSilent() {
		s.notify()
		b.wakeOwn()
	}
}

// reapSilent ends the sessions of silent nodes, and an earlier one of this node, and
// reports whether there were any.
func (b *backend) reapSilent() (reaped bool) {
	b.server.correctTimes()
	for _, other := range slices.Clone(b.server.backends) {
		if other.node.ID != b.node.ID {
			b.server.reap(other, b.timing.Margin)
			reaped = reaped || other.ended
		}
	}
	if stale := b.stale; stale != nil && !stale.ended && !b.server.defects.NoReaper &&
		stale.beatAt+stale.timing.Lease+b.timing.Margin < b.server.world.now() {
		stale.terminateUnlessEnded("reaped: its node has a new session")
		reaped = true
	}
	return reaped
}

// reap ends a backend that holds locks although its node has been silent for
// longer than its lease and the margin of the node that ends it: a state that the idle
// timeout does not cover.
func (s *server) reap(holder *backend, margin time.Duration) {
	row := s.nodes[holder.node.ID]
	if s.defects.NoReaper || holder.ended || row == nil || row.incarnation != holder.incarnation {
		return
	}
	if row.silentFor(s) > holder.timing.Lease+margin {
		holder.killed = holder.killed || s.world.now()-holder.beatAt <= holder.timing.Lease+margin // the clock has stepped
		holder.terminate("reaped: its lease has expired")
	}
}

// closeTerms ends the terms that the previous holders of roles left open. From
// then on no transaction of theirs passes the fence.
func (b *backend) closeTerms(roles []tenure.Role) {
	defer b.recordRows(simcalls.Closes, roles)
	for _, role := range roles {
		row := b.server.roles[role.Name()]
		if row.ended {
			continue
		}
		b.server.changing(role.Name())
		row.ended = true
		row.endedAt, row.unobserved = b.server.termEnd(row)
		switch {
		case row.server != b.server.started:
			row.reason = history.EndServerChanged
		case b.server.silent(row):
			row.reason = history.EndLeaseExpired
		default:
			row.reason = history.EndCrashed
		}
	}
}

// silent reports whether the session of a role's leader had sent no heartbeat for a lease
// when its death was noticed, or until now.
func (s *server) silent(row *roleRow) bool {
	node := s.leaderOf(row)
	if node == nil {
		return false
	}
	until := s.clock()
	if node.dead {
		until = node.diedAt
	}
	return until-node.lastHeartbeat >= node.lease
}

// termEnd is when a term ended that its leader left open: when a watch noticed the death
// of its session, or else now, but at most two leases after the last heartbeat. The end
// is unobserved if only now bounds it.
func (s *server) termEnd(row *roleRow) (at time.Duration, unobserved bool) {
	node, now := s.leaderOf(row), s.clock()
	if node == nil {
		return now, false
	}
	latest := node.lastHeartbeat + 2*node.lease
	if node.dead {
		return min(node.diedAt, latest), false
	}
	return min(now, latest), latest > now
}

// leaderOf is the row of the node that led a role in its last term, or nil if the node
// has left or has another session.
func (s *server) leaderOf(row *roleRow) *nodeRow {
	if node := s.nodes[row.node]; node != nil && row.holder != nil && node.incarnation == row.holder.incarnation {
		return node
	}
	return nil
}

// beginTerms begins terms of roles that b has locked since the given times.
func (b *backend) beginTerms(roles []tenure.Role, since []time.Duration) []tenure.AcquireResult {
	attempts := make([]tenure.AcquireResult, len(roles))
	recorded := b.beginning()
	for i, role := range roles {
		attempts[i] = b.beginTerm(role, since[i])
	}
	recorded(b.server.about(roles, attempts))
	return attempts
}

func (b *backend) beginTerm(role tenure.Role, since time.Duration) tenure.AcquireResult {
	s, now, name := b.server, b.server.world.now(), role.Name()
	row := s.roles[name]
	if !s.defects.NoFence && b.isFenced(name) {
		return tenure.AcquireResult{Outcome: tenure.OutcomePending, Fenced: true, RetryIn: b.timing.RefreshInterval / 4}
	}
	if wait := b.decides(row, since) - now; wait > 0 {
		return tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: min(wait, reunionCheck)}
	}

	clock := s.clock()
	previous, term := row.term, row.term+1
	begun := max(clock, row.endedAt)
	vacant := begun - row.endedAt
	if row.term == 0 || row.reason == history.EndServerChanged || row.unobserved {
		vacant = -1
	}
	if !s.defects.CountTerms {
		term = max(term, s.wall(clock).Add(s.ahead).UnixMilli())
	}
	if s.defects.RepeatTerms && row.term > 0 {
		term = row.term
	}
	s.changing(name)
	*row = roleRow{
		key: row.key, term: term, node: b.node.ID, holder: b, acquired: begun,
		server: s.started, lease: b.timing.Lease,
	}
	s.world.log("server", "%s begins term %d of %s", b.client.process, term, name)
	b.roleStep(steps.Begins, name, term)
	s.world.checker.termBegan(name, term, b)
	if crash := s.crashAtBegin; crash != nil {
		s.crashAtBegin = nil
		crash(b.client.process.machine)
	}
	return tenure.AcquireResult{Outcome: tenure.OutcomeGranted, NotDurable: true, Term: term, Previous: previous, AcquiredAt: s.wall(begun), PrecedingVacancy: vacant}
}

// isFenced reports whether fenced transactions hold off a new term, and ends
// those that have done so for too long.
func (b *backend) isFenced(role string) bool {
	s, now := b.server, b.server.world.now()
	fencing := s.fencing(role)
	if len(fencing) == 0 {
		delete(b.fencedSince, role)
		return false
	}
	since, met := b.fencedSince[role]
	if !met {
		b.fencedSince[role] = now
		return true
	}
	if now-since >= b.timing.FenceTimeout {
		for _, t := range fencing {
			t.end("it holds off a new term")
		}
	}
	return true
}

// endTerms records the end of terms: the first statement of a release.
func (b *backend) endTerms(releases []tenure.ReleaseRequest) {
	now := b.server.clock()
	b.ending(releases)
	for _, r := range releases {
		row := b.server.roles[r.Role.Name()]
		if row == nil || r.Term == 0 || row.term != r.Term || row.holder != b || row.ended {
			continue
		}
		b.server.changing(r.Role.Name())
		row.ended, row.endedAt, row.reason = true, now, r.Reason
		if r.Target != uuid.Nil {
			row.reservedFor, row.reservedUntil = r.Target, now+r.Reservation
		}
	}
}

// heartbeat proves that the session is still the node's session.
func (b *backend) heartbeat(load tenure.Load) (requestsPending bool, err error) {
	row := b.row()
	b.server.called(simcalls.Call{Kind: simcalls.Beats, Session: b.incarnation, Rowless: row == nil})
	if row == nil {
		return false, tenure.ErrSuperseded
	}
	b.server.flush()
	row.lastHeartbeat, row.load = b.server.clock(), load
	b.beatAt = b.server.world.now()
	b.step(steps.Beats)
	b.reapIfSilent()
	for _, r := range b.server.requests {
		if b.isAsked(r) {
			return true, nil
		}
	}
	return b.isOffered(), nil
}

// takeRequests removes and returns the requests for the node of b and for the
// roles that it leads.
func (b *backend) takeRequests() []tenure.Request {
	var taken, left []tenure.Request
	for _, r := range b.server.requests {
		if b.isAsked(r) {
			taken = append(taken, r)
		} else {
			left = append(left, r)
		}
	}
	b.server.requests = left
	b.follow(taken)
	return taken
}

// follow makes a node that received a request to drain count as leaving, before the
// node updates its description.
func (b *backend) follow(taken []tenure.Request) {
	row := b.row()
	for _, r := range taken {
		if row != nil && r.Node == b.node.ID {
			row.leaving = r.Kind == tenure.RequestDrain
		}
	}
}

// isAsked reports whether a request is for b.
func (b *backend) isAsked(r tenure.Request) bool { return b.leads(r.Role) || r.Node == b.node.ID }

func (b *backend) leads(role string) bool {
	row := b.server.roles[role]
	return row != nil && row.term > 0 && !row.ended && row.holder == b
}
