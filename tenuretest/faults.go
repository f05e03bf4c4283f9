package tenuretest

import (
	"fmt"

	"github.com/exactly-one/tenure"
)

// Occupy makes a stranger lead a role, under a new term, until [Database.Vacate]:
// candidates find the role held, and the stranger is listed as its leader. A
// node that leads the role loses it, and its session, at this moment.
func (d *Database) Occupy(role tenure.Role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.roleLocked(role)
	if holder := d.locks[r.key]; holder == d.stranger {
		return
	} else if holder != nil {
		holder.loseLocked(errRevoked)
		holder.endLocked(errRevoked, true)
	}
	now := d.clock.Now()
	d.assignLocked(d.stranger, role.Name(), r, now)
	d.beginTermLocked(d.stranger, role.Name(), r, now)
}

// Vacate makes the stranger that leads a role resign. It does nothing if no
// stranger leads it.
func (d *Database) Vacate(role tenure.Role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.roles[role.Name()]
	if r == nil || r.leader != d.stranger {
		return
	}
	d.endTermLocked(r, false)
	d.releaseLocked(d.stranger, role.Name())
	d.notifyLocked()
}

// Revoke ends the session of the node that leads a role, as a server does that
// restarts: the node loses all its roles, its terms end with a cause that
// matches [tenure.ErrSessionLost], and the roles are free when the contexts of
// the terms have been canceled. The node opens another session and may lead
// again, but other candidates go first. Revoke panics if no node leads the role.
func (d *Database) Revoke(role tenure.Role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.leaderLocked("Revoke", role)
	for _, r := range s.held {
		d.endTermLocked(r, true)
	}
	s.loseLocked(errRevoked)
	d.notifyListenersLocked()
}

// Expire ends the lease of the node that leads a role, in the database only: the
// node still trusts its terms until its next call to the database, at most one
// refresh interval, while other nodes lead. Use it to test a leader that has not
// learned of its session's end, or a process that was paused between a check of its
// term and its write. [Database.Fence] refuses the old terms. Expire panics if no
// node leads the role.
func (d *Database) Expire(role tenure.Role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaderLocked("Expire", role).endLocked(errSilent, true)
}

// Silence keeps the answers from the session of the node that leads a role, as a
// network does that drops packets: heartbeats are not acknowledged, so the
// node's terms end with its trust, with a cause that matches
// [tenure.ErrTrustExpired], and others lead when its lease has ended. The
// function that it returns lets the answers through again; it does nothing once
// the node has given the session up. Other sessions, also of the same node, are
// not affected. Silence panics if no node leads the role.
func (d *Database) Silence(role tenure.Role) (resume func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, silence := d.leaderLocked("Silence", role), make(chan struct{})
	if s.silence != nil {
		silence = s.silence
	}
	s.silence = silence
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if s.silence != silence || s.isLost() {
			return
		}
		s.silence = nil
		close(silence)
		if s.ended {
			s.loseLocked(s.cause)
		}
		s.wakeLocked()
	}
}

// Fail makes everything that is asked of the database fail with err until Fail
// is called with nil: what sessions send, opening a session, looking up leaders,
// [Database.Fence]. Sessions live on, as on a server that answers with errors, so
// leaders lead until their trust ends. For a server that is gone, call Revoke
// too. An err that matches [tenure.ErrRefused] makes [tenure.Open] return
// immediately.
func (d *Database) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	d.notifyListenersLocked()
}

// leaderLocked returns the session of the node that leads a role.
func (d *Database) leaderLocked(doing string, role tenure.Role) *session {
	r := d.roles[role.Name()]
	if r == nil || r.leader == nil || r.leader == d.stranger {
		panic(fmt.Sprintf("tenuretest: %s: no node leads %q; wait for one first, for example with Election.WaitForLeadership",
			doing, role.Name()))
	}
	return r.leader
}
