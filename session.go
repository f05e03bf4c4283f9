package tenure

import (
	"context"
	"time"
)

// session is one incarnation of a node as the engine sees it. engine.go
// describes its goroutines.
type session struct {
	node     *Node
	conn     Session
	registry RegistrySession // conn, if it is one
	trust    trust
	lost     chan struct{} // closed when the session has ended
	idle     chan struct{} // closed when the session has ended and all work under it has returned

	// Guarded by Node.mu.
	started            bool
	ended              bool
	proven             bool // a second heartbeat was acknowledged
	openedAt           time.Duration
	nextBeat           time.Duration
	beatSoon           bool          // a term's record is not durable before the next heartbeat
	vacancyAt          time.Duration // of the latest notification that a role may be vacant
	heartbeatWaiters   []chan error  // of callers waiting for the next heartbeat
	terms              map[*Term]struct{}
	releases           []release
	releaseBatch       []release   // in the current call of Release
	acquireBatch       []*Election // in the current call of TryAcquire
	requestsPending    bool        // the database may have requests for this node
	calls              []call
	descriptionVersion uint64 // of the description in the registry
	describeAt         time.Duration
	descriptionWaiters []chan error // of callers waiting for the next write of the description
	callers            []chan error // of callers waiting for the present statement
	leaving            bool
	wakePending        bool
	interrupt          context.CancelFunc // interrupts the current Wait
}

// release is a role to release: a term, or a lock without a term.
type release struct {
	election *Election
	term     *Term // nil for a lock whose term has not begun
	number   int64
}

// call is a function for the session's goroutine to run.
type call struct {
	run    func(RegistrySession) error
	result chan error // buffered
}

// wakeLocked makes serve choose its next job again.
func (s *session) wakeLocked() {
	s.wakePending = true
	if s.interrupt != nil {
		s.interrupt()
	}
}

// queueReleaseLocked queues the release of a term after its trust has ended and its work
// has returned. If the session has ended, it drops the role: the lock is lost with the
// connection.
func (s *session) queueReleaseLocked(t *Term) {
	r := release{election: t.election, term: t, number: t.number}
	if s.ended {
		s.dropRoleLocked(r)
		return
	}
	s.releases = append(s.releases, r)
	s.wakeLocked()
}

// queueUnlockLocked queues the release of a lock without a term: its election
// has stopped, or the term could not begin in time.
func (s *session) queueUnlockLocked(e *Election, number int64) {
	e.attempt.unlocking = true
	s.releases = append(s.releases, release{election: e, number: number})
	s.wakeLocked()
}

// answerLocked returns the result of the finished statement to its callers. If the session
// has ended since, they already have its cause.
func (s *session) answerLocked(err error) {
	for _, done := range s.callers {
		done <- err
	}
	s.callers = nil
}
