package tenuretest

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// cooldown is how long a node cannot acquire a role again after the loss of a term: tests
// then know the next leader. It is shorter than the quick retries of a node after it has
// opened a session, so the node misses no vacancy.
const cooldown = 20 * time.Millisecond

// role is the record of a role: its last term, and which node may have the next. It is
// never removed: term numbers only increase.
type role struct {
	key      tenure.LockKey
	last     tenure.Leader // who leads, or led last; its term is 0 before the first
	leader   *session      // nil if the last term has ended
	locked   time.Duration // when the present holder took the lock
	ended    time.Duration // when the last term ended
	unclean  bool          // it was not given up by its leader
	requests []tenure.Request

	reservedFor   uuid.UUID
	reservedUntil time.Duration
	cooldownFor   uuid.UUID // the node that is in its cooldown
	cooldownUntil time.Duration
}

// roleLocked returns the record of a role.
func (d *Database) roleLocked(of tenure.Role) *role {
	r := d.roles[of.Name()]
	if r == nil {
		r = &role{key: of.LockKey(uuid.Nil)}
		d.roles[of.Name()] = r
	}
	return r
}

// tryLocked makes one attempt of a session to acquire a role.
func (d *Database) tryLocked(s *session, c tenure.AcquireRequest) tenure.AcquireResult {
	instant, r := d.clock.Now(), d.roleLocked(c.Role)
	now := instant.Mono
	if key := c.Role.LockKey(uuid.Nil); key != r.key {
		return tenure.AcquireResult{Outcome: tenure.OutcomeFailed,
			Err: fmt.Errorf("%w: %s has %s, not %s", tenure.ErrKeyMismatch, c.Role, r.key, key)}
	}
	switch id := s.opening.Node.ID; {
	case s.held[c.Role.Name()] == r:
		if r.leader == s {
			return tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: errors.New("the session already leads the role")}
		}
	case r.reservedUntil > now && r.reservedFor != id:
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: r.reservedUntil - now}
	case c.YieldFor > 0 && c.YieldTerm == r.last.Term && r.reservedUntil <= now:
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: c.YieldFor}
	case d.locks[r.key] != nil:
		busy := tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
		if c.Recovering {
			busy.Holder = r.last.NodeID
		}
		return busy
	case r.cooldownUntil > now && r.cooldownFor == id:
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
	default:
		d.assignLocked(s, c.Role.Name(), r, instant)
	}
	if r.unclean {
		if wait := r.locked + s.opening.Timing.Settle - now; wait > 0 {
			return tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: wait}
		}
	}
	return d.beginTermLocked(s, c.Role.Name(), c.NodeName, r, instant)
}

// assignLocked gives a free role to a session.
func (d *Database) assignLocked(s *session, name string, r *role, now clocks.Instant) {
	d.locks[r.key], s.held[name], r.locked = s, r, now.Mono
}

// beginTermLocked begins a term of a role held by s. leader is the name of its node, if s is
// of an agent.
func (d *Database) beginTermLocked(s *session, name, leader string, r *role, now clocks.Instant) tenure.AcquireResult {
	vacant := time.Duration(-1)
	if r.last.Term > 0 {
		vacant = now.Mono - r.ended
	}
	node := s.opening.Node
	r.leader = s
	previous := r.last.Term
	r.last = tenure.Leader{
		Role: name, Term: max(previous+1, now.Wall.UnixMilli()), NodeID: node.ID, NodeName: cmp.Or(leader, node.Name), Host: node.Host, AcquiredAt: now.Wall,
	}
	if leader != "" && leader != node.Name {
		r.last.Agent = node.Name
	}
	r.reservedUntil = 0
	d.notifyListenersLocked()
	return tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: r.last.Term, Previous: previous, AcquiredAt: now.Wall, PrecedingVacancy: vacant}
}

// endTermLocked records the end of the current term, if there is one, and drops
// its requests.
func (d *Database) endTermLocked(r *role, unclean bool) {
	if r.leader == nil {
		return
	}
	r.leader, r.ended, r.unclean, r.requests = nil, d.clock.Now().Mono, unclean, nil
}

// releaseLocked frees a role after the end of its term.
func (d *Database) releaseLocked(s *session, name string) {
	delete(d.locks, s.held[name].key)
	delete(s.held, name)
}

// Fence returns nil if the term is valid in this database, and an error matching
// [tenure.ErrFenced] if it has ended there, even if its node still trusts it. It replaces
// a fenced transaction in tests of writing code: a store in memory calls it before it
// accepts a write. Unlike a fenced transaction it does not delay the next term.
func (d *Database) Fence(term *tenure.Term) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil {
		return fmt.Errorf("fence: %w", d.failure)
	}
	r := d.roles[term.Role().Name()]
	if r == nil || r.leader == nil || r.last.Term != term.Number() || r.last.NodeID != term.NodeID() {
		return fmt.Errorf("%w: term %d of %s", tenure.ErrFenced, term.Number(), term.Role())
	}
	return nil
}
