package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
)

// Invariant 7: a role that some candidate could lead does not stay vacant for longer
// than the page on guarantees states. That time depends on why the role is vacant, so
// vacancies follows each role from one check to the next: whether it has a leader; if
// not, until when a reason that the page names excuses that; and since when each
// candidate could lead it. A candidate that could do so after the last excuse has
// ended, and has had time to notice, must lead.

// vacancies watches the roles of a world. Its methods are called with World.mu
// held.
type vacancies struct {
	world     *World
	roles     map[string]*vacancy
	disturbed map[*Process]time.Duration // when something last kept a process from campaigning
	doubt     time.Duration              // when a notification or the end of a session could last have gone unnoticed
	unwatched time.Duration              // when no watch looked for sessions without a row
	fenced    map[fencedRole]time.Duration
	guards    map[guard]time.Duration // since when each has been one
}

// vacancy is the state of a role without a leader.
type vacancy struct {
	until  time.Duration // when the last excuse ended, or will end
	freed  time.Duration // when a check first found the lock free, possibly before until; 0 while it is held
	why    string
	polled bool                       // no node is notified of the end of the excuse
	busy   map[*Process]time.Duration // until when a process backs off
}

// fencedRole is a role whose next term, after the given one, a backend cannot begin.
type fencedRole struct {
	role    string
	term    int64
	backend *backend
}

func newVacancies(w *World) *vacancies {
	v := &vacancies{world: w, roles: map[string]*vacancy{}, disturbed: map[*Process]time.Duration{}, fenced: map[fencedRole]time.Duration{}, guards: map[guard]time.Duration{}}
	for _, role := range w.roleNames {
		v.roles[role] = &vacancy{why: "the beginning", busy: map[*Process]time.Duration{}}
	}
	return v
}

// watchVacancies checks the roles at fixed times.
func (w *World) watchVacancies(ctx context.Context, interval time.Duration) {
	v := newVacancies(w)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.mu.Lock()
			v.checkAll()
			w.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (v *vacancies) checkAll() {
	w, now := v.world, v.world.now()
	alive := w.alive()
	for _, p := range alive {
		if v.isDisturbed(p) {
			v.disturbed[p] = now
		}
	}
	if v.isDoubtful() {
		v.doubt = now
	}
	v.doubt = max(v.doubt, w.server.lostAt) // notifications may be lost for a shorter time than between two checks
	if !v.looksForStrangers() {
		v.unwatched = now
	}
	v.followGuards(alive)
	for _, role := range w.roleNames {
		vacancy := v.roles[role]
		vacancy.followWork(role, alive, now)
		if v.isLed(role, alive) {
			*vacancy = vacancyOf(vacancy, now, "its leader's term")
			continue
		}
		if at := w.led[role]; at > vacancy.until {
			*vacancy = vacancyOf(vacancy, at, "its leader's term")
		}
		if w.server.locks[w.server.roleLock(tenure.NamedRole(role))] != nil {
			vacancy.freed = 0
		} else if vacancy.freed == 0 {
			vacancy.freed = now
		}
		// How long a silent session can keep its locks is known better when guards are
		// known.
		until, why, polled := v.excuse(role)
		if until > vacancy.until || why == silentHolder && vacancy.why == silentHolder {
			vacancy.until, vacancy.why, vacancy.polled = until, why, polled
		}
		for _, p := range alive {
			v.check(role, vacancy, p)
		}
	}
}

func vacancyOf(old *vacancy, until time.Duration, why string) vacancy {
	return vacancy{until: until, why: why, busy: old.busy}
}

// check compares how long a role has been vacant with how long a candidate may
// take to lead it.
func (v *vacancies) check(role string, vacancy *vacancy, p *Process) {
	now := v.world.now()
	since, seen := v.disturbed[p]
	since = max(since, vacancy.busy[p])
	if !seen || since >= now || !isCampaigning(p, role) {
		return
	}
	poll := p.machine.member.Config.CheckInterval
	due := vacancy.until
	noticed := vacancy.until // when the notification that the role is vacant arrives at the latest
	if vacancy.freed > 0 {
		noticed = min(noticed, vacancy.freed)
	}
	if vacancy.polled || v.doubt >= noticed-v.slack() {
		due += poll
	}
	again := max(poll, longestRetry)
	if vacancy.why == silentHolder && v.doubt >= since && !v.isGuarded(role) { // the watch of a node that is back may be blocked
		again = max(again, v.longestCheck())
	}
	due = max(due, since+again) + v.slack()
	if now > due {
		v.world.checker.violate(7, "%s has been vacant until %v although %s could lead it since %v and what excused that, %s, ended at %v; %s",
			role, now, p, since, vacancy.why, vacancy.until, v.world.server.whoHolds(role))
	}
}

// silentHolder excuses a vacancy: a session that no node can use keeps the lock.
const silentHolder = "a session that holds it in silence"

// longestRetry is the longest pause after an attempt that failed; see retry.
const longestRetry = 2 * time.Second

// slack is how long a change of leader takes when everything works: some round trips,
// and the pauses between the quick attempts.
func (v *vacancies) slack() time.Duration { return 20*v.world.network.Most + 250*time.Millisecond }

// isCampaigning reports whether a process campaigns for a role.
func isCampaigning(p *Process, role string) bool {
	election := p.elections[role]
	if election == nil || p.work[role] != nil {
		return false
	}
	state := election.State()
	return state == tenure.Follower || state == tenure.Acquiring || state == tenure.Reconnecting
}

// followWork records the processes that have worked for a role: a process whose work
// has returned backs off.
func (v *vacancy) followWork(role string, alive []*Process, now time.Duration) {
	for _, p := range alive {
		if election := p.elections[role]; p.work[role] != nil || election != nil && !isCampaigning(p, role) {
			v.busy[p] = now + p.machine.member.backsOff()
		}
		if at, worked := p.returned[role]; worked { // a term may be shorter than the time between two checks
			v.busy[p] = max(v.busy[p], at+p.machine.member.backsOff())
		}
	}
}

// backsOff is how long a process backs off, at most, after its work has returned.
func (m Member) backsOff() time.Duration {
	if m.Work.Term > 0 {
		return 12 * m.Config.CheckInterval
	}
	return time.Second + m.Config.CheckInterval // NoReacquire: it campaigns again after a second
}

// isLed reports whether a process works for a role under the current term.
func (v *vacancies) isLed(role string, alive []*Process) bool {
	for _, p := range alive {
		if work := p.work[role]; work != nil && work.ctx.Err() == nil && !p.paused() {
			return true
		}
	}
	return false
}

// isDisturbed reports whether something keeps a process from campaigning as it
// should.
func (v *vacancies) isDisturbed(p *Process) bool {
	s, m := v.world.server, p.machine
	if !s.up || p.node == nil || p.ctx.Err() != nil || p.paused() || p.doing > 0 || m.slow > 0 || p.isHeldUp() {
		return true
	}
	for _, way := range []*path{m.sessionUp, m.sessionDown, m.poolUp, m.poolDown} {
		if way.isDisturbed() {
			return true
		}
	}
	b := s.backendOf(m)
	if b == nil || b.stuck || b.running != nil || b.rowBlock || b.client.cause != nil || b.client.hungUp || b.client != p.sessions[len(p.sessions)-1] {
		return true
	}
	row := b.row()
	return row == nil || !row.description.Status.AcceptsWork() || row.leaving || b.client.undescribed
}

// isDisturbed reports whether messages are held back or late.
func (p *path) isDisturbed() bool {
	return p.blocked || p.extra > 0 || slices.ContainsFunc(p.links, func(l *link) bool {
		return len(l.sent) > 0 && p.world.now()-l.sent[0] > p.most
	})
}

// isDoubtful reports whether the end of a session, or a notification, may go unnoticed:
// it may be lost, or the node that watches is disturbed.
func (v *vacancies) isDoubtful() bool {
	w := v.world
	if w.network.Loss > 0 || !w.server.up {
		return true
	}
	for _, m := range w.machines {
		// A node that releases a role notifies the others in a separate statement.
		for _, way := range []*path{m.watchUp, m.watchDown, m.sessionUp, m.sessionDown} {
			if m.watchClosed || way.isDisturbed() {
				return true
			}
		}
	}
	for _, b := range w.server.backends {
		p := b.client.process
		if p.crashed || p.paused() || b.reporting && p.isHeldUp() {
			return true
		}
		if b.client.notifying && (b.stuck || p.machine.slow > 0) { // it may time out
			return true
		}
	}
	return false
}

// whoHolds describes the session that holds the lock of a role.
func (s *server) whoHolds(role string) string {
	l := s.locks[s.roleLock(tenure.NamedRole(role))]
	if l == nil {
		return "its lock is free"
	}
	b := l.holder
	held := b.client.roles[role]
	if held == nil {
		held = &heldRole{}
	}
	return fmt.Sprintf("its lock is held by session %d of %s (stuck: %t, ended: %t, last heartbeat at %v, term %d, since %v, to wait until %v)",
		b.incarnation, b.client.process, b.stuck, b.ended, b.beatAt, held.term, held.since, b.earliest(cmp.Or(s.roles[role], &roleRow{}), held.since))
}

// excuse returns until when the current state excuses a vacancy, and whether no node is
// notified of the end of that state.
func (v *vacancies) excuse(role string) (until time.Duration, why string, polled bool) {
	s, now := v.world.server, v.world.now()
	if !s.up {
		return now, "a server that is down", true
	}
	if s.dropped {
		return now, "a schema that was removed", true
	}
	row := s.roles[role]
	l := s.locks[s.roleLock(tenure.NamedRole(role))]
	switch {
	case l == nil && row != nil && s.isReserved(row):
		return s.away(row.reservedUntil), "a reservation", true
	case l == nil:
		return 0, "", false
	}
	b := l.holder
	p := b.client.process
	if v.isDisturbed(p) || s.backendOf(p.machine) != b {
		return v.silence(b), silentHolder, v.strangerSince(b) > 0
	}
	if b.running != nil {
		return now, "a statement in progress", false
	}
	if p.work[role] != nil {
		return now, "work that has not returned", false
	}
	held := b.client.roles[role]
	if held == nil || held.term > 0 {
		return 0, "", false
	}
	// A term that a fenced transaction holds up is tried again after a part of the refresh
	// interval. A node that was disturbed in the meantime, or suspended, tries again within
	// one refresh interval, and does not wait for the full time again.
	retry := b.timing.RefreshInterval / 2
	until, why = max(b.earliest(row, held.since), v.disturbed[p]+retry)+retry, "a wait before the term"
	if len(s.fencing(role)) > 0 {
		key := fencedRole{role, cmp.Or(row, &roleRow{}).term, b}
		since, met := v.fenced[key]
		if !met {
			since = now
			v.fenced[key] = since
		}
		until, why = max(until, since+b.timing.FenceTimeout+b.timing.RefreshInterval), "a fenced transaction"
	}
	return until, why, false
}

// silence is until when a session may keep its locks without heartbeats.
func (v *vacancies) silence(b *backend) time.Duration {
	lease := b.timing.Lease
	reaped := b.beatAt + lease + b.timing.Margin
	doubtful := v.doubt >= v.world.now()-lease // the node that should end it may not see it
	if since := v.strangerSince(b); since > 0 {
		reaped = max(since+watchPeriod+max(v.longestLease(), strangerGrace), v.unwatched+v.slack())
	}
	if doubtful {
		reaped = min(reaped+v.longestCheck(), v.guarded(b))
	}
	if at := v.world.server.steppedAt; at > 0 && b.beatAt <= at { // another heartbeat corrects the time
		reaped = max(reaped, at+2*(lease+b.timing.Margin)+v.longestCheck())
	}
	if b.idleUntil > 0 {
		return min(b.idleUntil, reaped)
	}
	return reaped
}

// strangerSince is when a session was first seen without a row, or now if it has
// none and no watch has seen that yet; 0 if it has one, or if the session that has
// taken its row over can end it.
func (v *vacancies) strangerSince(b *backend) time.Duration {
	s := v.world.server
	row := s.nodes[b.node.ID]
	switch {
	case b.strangerAt > 0:
		return b.strangerAt
	case row != nil && row.incarnation == b.incarnation:
		return 0
	case slices.ContainsFunc(s.backends, func(later *backend) bool {
		return later.stale == b && !later.ended && !v.isDisturbed(later.client.process)
	}):
		return 0
	default:
		return v.world.now()
	}
}

// longestLease is the longest lease and margin of all nodes.
func (v *vacancies) longestLease() time.Duration {
	longest := time.Duration(0)
	for _, m := range v.world.machines {
		longest = max(longest, m.member.Config.Lease+m.member.Config.Margin)
	}
	return longest
}

// longestCheck is the time within which some node checks for silent nodes although the
// watch of the node that should do so is blocked: that node notices the fault after a
// lease, and then checks at its check intervals.
func (v *vacancies) longestCheck() time.Duration {
	longest := time.Duration(0)
	for _, m := range v.world.machines {
		longest = max(longest, m.member.Config.Lease+m.member.Config.CheckInterval)
	}
	return longest
}
