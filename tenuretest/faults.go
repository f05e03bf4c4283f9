package tenuretest

import (
	"fmt"

	"github.com/exactly-one/tenure"
)

// Occupy makes a stranger lead a role, under a new term, until [Database.Vacate]:
// candidates find the role held, and the stranger is listed as its leader. A leading node
// loses the role, and its session, at this moment.
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
	d.beginTermLocked(d.stranger, role.Name(), "", r, now)
}

// Vacate makes a stranger resign from a role. It does nothing if no stranger leads the
// role.
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

// Revoke ends the session of a role's leader, as a restarting server does: the node loses
// all its roles, its terms end with a cause matching [tenure.ErrSessionLost], and the
// roles are free when the contexts of the terms have been canceled. The node opens another
// session and may lead again, but other candidates go first. Revoke panics if no node
// leads the role.
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

// Expire ends the lease of a role's leader, in the database only: the node still trusts
// its terms until its next call to the database, at most one refresh interval, while other
// nodes lead. Use it to test a leader without knowledge of its session's end, or a process
// paused between a check of its term and its write. [Database.Fence] refuses the old
// terms. Expire panics if no node leads the role.
func (d *Database) Expire(role tenure.Role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaderLocked("Expire", role).endLocked(errSilent, true)
}

// Silence keeps the answers from the session of a role's leader, as a network with packet
// loss does. Heartbeats are not acknowledged, so the node's terms end with its trust, with
// a cause matching [tenure.ErrTrustExpired], and others lead when its lease has ended. The
// returned function lets the answers through again; it does nothing once the node has
// given the session up. Other sessions, also of the same node, are not affected. Silence
// panics if no node leads the role.
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

// Fail makes every call of the database fail with err until Fail is called with nil:
// statements of sessions, opening a session, looking up leaders, [Database.Fence].
// Sessions live on, as on a server answering with errors, so leaders lead until their
// trust ends. For a dead server, call Revoke too. If err matches [tenure.ErrRefused],
// [tenure.Open] returns immediately.
func (d *Database) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	d.notifyListenersLocked()
}

// leaderLocked returns the session of a role's leader.
func (d *Database) leaderLocked(doing string, role tenure.Role) *session {
	r := d.roles[role.Name()]
	if r == nil || r.leader == nil || r.leader == d.stranger {
		panic(fmt.Sprintf("tenuretest: %s: no node leads %q; wait for one first, for example with Election.WaitForLeadership",
			doing, role.Name()))
	}
	return r.leader
}
