package sim

import (
	"fmt"
	"maps"
	"time"
)

// leadersByClaim returns the leader of each role, as the nodes themselves report.
func (w *World) leadersByClaim() map[string]*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	holders := map[string]*Process{}
	for _, role := range w.roleNames {
		for _, claim := range w.checker.leading(role) {
			holders[role] = claim.process
		}
	}
	return holders
}

// serving returns the active members.
func (w *World) serving() map[*Process]bool {
	serving := map[*Process]bool{}
	for _, p := range w.members() {
		serving[p] = p.member.Ready() == nil
	}
	maps.DeleteFunc(serving, func(_ *Process, serves bool) bool { return !serves })
	return serving
}

// unfairShare returns why not every role is led by an active member, or which member
// has less or more than its share.
func (w *World) unfairShare() string {
	serving := w.serving()
	leads := map[*Process]int{}
	holders := w.leadersByClaim()
	for _, role := range w.roleNames {
		holder := holders[role]
		if holder == nil {
			return fmt.Sprintf("no node leads %s", role)
		}
		leads[holder]++
	}
	least := len(w.roleNames) / len(serving)
	most := (len(w.roleNames) + len(serving) - 1) / len(serving)
	for p := range maps.Keys(leads) {
		if !serving[p] {
			return fmt.Sprintf("%s leads %d roles and is not in service", p, leads[p])
		}
	}
	for p := range serving {
		if n := leads[p]; n < least || n > most {
			return fmt.Sprintf("%s leads %d of %d roles; there are %d members in service", p, n, len(w.roleNames), len(serving))
		}
	}
	return ""
}

// share waits until the roles are shared fairly. If members have only joined, and the
// earlier leaders are known, it checks that no role has moved between two members that
// were both active before.
func (m *calmPhase) share(before map[string]*Process, served map[*Process]bool) {
	if m.member.Spread == nil || m.world.Failure() != nil {
		return
	}
	if !m.expectThat(fairShares, m.shareBound(), "have their share", m.world.unfairShare) {
		return
	}
	defer time.Sleep(assumedIntervals * m.member.Config.CheckInterval)
	serving := m.world.serving()
	for role, now := range m.world.leadersByClaim() {
		was := before[role]
		if was != nil && was != now && serving[was] && served[now] {
			m.world.violate(fairShares, "%s has moved from %s to %s, although both were in service all the time", role, was, now)
		}
	}
}

// assumedIntervals is the number of check intervals during which members campaign for
// roles of others that did not acquire them immediately.
const assumedIntervals = 12
