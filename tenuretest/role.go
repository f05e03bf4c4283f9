package tenuretest

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// courtesy is for how long a node whose term was taken from it lets others go
// first. It makes tests certain of who leads next. A node looks for vacant roles
// for longer than that when it has opened a session, so that it misses none.
const courtesy = 20 * time.Millisecond

// role is the record of a role: its last term, and who may have the next. It is
// never removed, so that terms only grow.
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
	patient       uuid.UUID // lets others go first
	patientUntil  time.Duration
}

// role returns the record of a role. Under the mutex.
func (d *Database) role(of tenure.Role) *role {
	r := d.roles[of.Name()]
	if r == nil {
		r = &role{key: of.LockKey(uuid.Nil)}
		d.roles[of.Name()] = r
	}
	return r
}

// try makes one attempt of a session to take a role. Under the mutex.
func (d *Database) try(s *session, c tenure.AcquireRequest) tenure.AcquireResult {
	instant, r := d.clock.Now(), d.role(c.Role)
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
	case d.locks[r.key] != nil:
		busy := tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
		if c.Recovering {
			busy.Holder = r.last.NodeID
		}
		return busy
	case r.patientUntil > now && r.patient == id:
		return tenure.AcquireResult{Outcome: tenure.OutcomeHeld}
	default:
		d.lock(s, c.Role.Name(), r, instant)
	}
	if r.unclean {
		if wait := r.locked + s.opening.Timing.Settle - now; wait > 0 {
			return tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: wait}
		}
	}
	return d.begin(s, c.Role.Name(), r, instant)
}

// lock gives a role that is free to a session. Under the mutex.
func (d *Database) lock(s *session, name string, r *role, now clocks.Instant) {
	d.locks[r.key], s.held[name], r.locked = s, r, now.Mono
}

// begin begins a term of a role whose lock s holds. Under the mutex.
func (d *Database) begin(s *session, name string, r *role, now clocks.Instant) tenure.AcquireResult {
	vacant := time.Duration(-1)
	if r.last.Term > 0 {
		vacant = now.Mono - r.ended
	}
	node := s.opening.Node
	r.leader = s
	previous := r.last.Term
	r.last = tenure.Leader{
		Role: name, Term: max(previous+1, now.Wall.UnixMilli()), NodeID: node.ID, NodeName: node.Name, Host: node.Host, AcquiredAt: now.Wall,
	}
	r.reservedUntil = 0
	d.tellListeners()
	return tenure.AcquireResult{Outcome: tenure.OutcomeGranted, Term: r.last.Term, Previous: previous, AcquiredAt: now.Wall, PrecedingVacancy: vacant}
}

// end records the end of the present term, if there is one, and drops the
// requests for it. Under the mutex.
func (d *Database) end(r *role, unclean bool) {
	if r.leader == nil {
		return
	}
	r.leader, r.ended, r.unclean, r.requests = nil, d.clock.Now().Mono, unclean, nil
}

// unlock frees a role whose term has ended. Under the mutex.
func (d *Database) unlock(s *session, name string) {
	delete(d.locks, s.held[name].key)
	delete(s.held, name)
}

// Fence reports whether a term still stands in this database: nil, or an error
// that matches [tenure.ErrFenced] if it has ended there, whatever its node
// believes. It stands in for a fenced transaction in tests of code that writes:
// a store in memory calls it before it accepts a write. Unlike a fenced
// transaction it does not hold off the next term.
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
