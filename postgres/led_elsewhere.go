package postgres

import (
	"slices"
	"time"

	"github.com/exactly-one/tenure"
)

// A candidate tries roles at every check interval, in case a notification was lost. If a
// living session leads a role, the candidate's heartbeat shows as much as an attempt:
//
//   - the leading session holds its node lock;
//   - no continuing session has released a role since;
//   - no node was found dead. This also covers a leader that could not record its release
//     of a role: the row names it while another session holds the lock.
//
// So attempts for such roles fail without a statement. A candidate for any number of roles
// costs as much at rest as a node that waits for none.

const (
	// quietTime is how long there was no change before attempts may fail without a
	// statement. It is longer than the engine's quick retries.
	quietTime = time.Second

	// provenIntervals is after how many check intervals all roles are tried nevertheless.
	provenIntervals = 60

	// maxLeaders limits the sessions checked by a heartbeat. A thousand take the server a
	// third of a millisecond. Roles of other leaders are tried at every check interval.
	maxLeaders = 1000
)

// ledElsewhere contains the roles led by other sessions. Times are on the node's
// monotonic clock.
type ledElsewhere struct {
	leaders   map[string]int32 // by role: its leader's session
	sessions  []int32          // the sessions in leaders, and earlier ones
	announced uint64           // changes when leaders was last emptied
	since     time.Duration    // the time of that change
	beatAt    time.Duration    // the last heartbeat
	releases  int64            // as of the last heartbeat
	provenAt  time.Duration    // when roles of leaders were last tried nevertheless
	asks      bool             // the present call, not the first after a change, asks who leads the held roles
	fresh     []leaderFound    // by the attempts of the present call
}

// leaderFound is a role and its leader's session.
type leaderFound struct {
	role    string
	session int32
}

// leads reports whether an attempt fails.
func (l *ledElsewhere) leads(c tenure.AcquireRequest) bool {
	_, led := l.leaders[c.Role.Name()]
	return led && !c.Recovering && c.YieldFor == 0
}

// beat records a heartbeat and reports whether roles were released since the last one.
func (l *ledElsewhere) beat(now time.Duration, releases int64) (released bool) {
	released = len(l.leaders) > 0 && releases != l.releases
	l.beatAt, l.releases = now, releases
	return released
}

// reviewLedElsewhere forgets possibly changed leaders, before an attempt.
func (s *session) reviewLedElsewhere() {
	l, now := &s.elsewhere, s.opening.Clock.Now().Mono
	l.fresh = l.fresh[:0]
	announced := s.listener.Announcements()
	l.asks = announced == l.announced
	if !l.asks || l.leaders == nil || s.watch.down.Load() {
		l.leaders, l.sessions, l.announced, l.since = map[string]int32{}, nil, announced, now
	}
	if len(l.leaders) > 0 && now-l.provenAt >= provenIntervals*s.opening.Timing.CheckInterval {
		l.provenAt = now
		clear(l.leaders) // also those that the next calls try
	}
}

// found notes a role led by a living session, as an attempt has found.
func (l *ledElsewhere) found(w lockRequest, session int32) {
	if w.yieldFor == 0 {
		l.fresh = append(l.fresh, leaderFound{w.role.Name(), session})
	}
}

// keepLeaders remembers the sessions found to lead roles, unless something has changed
// since the last heartbeat. The next heartbeat sees a release between the last one and
// the attempt.
func (s *session) keepLeaders() {
	l := &s.elsewhere
	if len(l.fresh) == 0 || l.beatAt < l.since+quietTime || s.opening.Timing.RefreshInterval > s.opening.Timing.CheckInterval {
		return
	}
	if len(l.leaders) == 0 {
		l.provenAt = s.opening.Clock.Now().Mono
	}
	for _, f := range l.fresh {
		if !slices.Contains(l.sessions, f.session) {
			if len(l.sessions) == maxLeaders {
				continue
			}
			l.sessions = append(l.sessions, f.session)
		}
		l.leaders[f.role] = f.session
	}
}
