package cluster

import (
	"maps"
	"time"

	"github.com/exactly-one/tenure"
)

// acceptsOffer reports whether this member campaigns for a role when it becomes
// reserved for it. The loop then begins to campaign before the leader steps down.
func (s *spreadRun) acceptsOffer(role string) bool {
	if _, shared := s.roles[role]; !shared {
		return false
	}
	now := s.member.node.Clock().Now().Mono
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := s.cooldowns[role]
	if failed := !pause.asked && pause.until > now; s.leaving || pause.done || failed {
		return false
	}
	delete(s.cooldowns, role) // the leader gives the role to this member: others need not come first
	s.offered[role] = longAdoption
	s.dirty = true
	s.wakeLoop()
	return true
}

// adoptOffered adopts the roles offered to this member, and no longer the roles it was
// asked to give up.
func (s *spreadRun) adoptOffered(now, interval time.Duration) {
	s.mu.Lock()
	offered, givenUp := maps.Clone(s.offered), maps.Clone(s.givenUp)
	clear(s.offered)
	clear(s.givenUp)
	s.mu.Unlock()
	a := &s.assumption
	for role := range givenUp {
		if a.standsIn[role] {
			a.givenBack[role] = true
		}
		delete(a.adopted, role)
		delete(a.standsIn, role)
	}
	for role, intervals := range offered {
		a.adopt(role, now+intervals*interval)
	}
}

// adoptReserved adopts the roles reserved for this member against the plan. An operator's
// hand-over was offered before; other reservations are moves of another member's plan.
// Roles placed here by the plan are its own: if it adopted them, a later plan could not
// move them for a while.
func (s *spreadRun) adoptReserved(found []tenure.RoleHolder, now, interval time.Duration) {
	a := &s.assumption
	if a.leaving() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range found {
		if !h.Reserved || h.Node != a.self {
			continue
		}
		if s.plan.Placed[h.Role] != a.self {
			a.adopt(h.Role, now+shortAdoption*interval)
		}
		s.endCourtesyLocked(h.Role)
	}
}

// pausing reports whether this member leaves a role to others because it was asked to
// give it up.
func (s *spreadRun) pausing(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pause := range s.cooldowns {
		if pause.asked && pause.until > now {
			return true
		}
	}
	return false
}

// endCourtesyLocked ends the pause after this member gave a role up: the role is reserved
// for this member now.
func (s *spreadRun) endCourtesyLocked(role string) {
	if s.cooldowns[role].asked {
		delete(s.cooldowns, role)
		s.dirty = true
	}
}
