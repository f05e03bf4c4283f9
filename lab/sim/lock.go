package sim

import (
	"slices"

	"github.com/exactly-one/tenure"
)

// lockID names an advisory lock: of a role, or of a session of a node.
type lockID struct {
	key         tenure.LockKey
	incarnation int64
}

func nodeLock(incarnation int64) lockID { return lockID{incarnation: incarnation} }

func (s *server) roleLock(role tenure.Role) lockID { return lockID{key: role.LockKey(s.installed)} }

// roleLock is the lock of a role in the installation of b.
func (b *backend) roleLock(role tenure.Role) lockID { return lockID{key: role.LockKey(b.installed)} }

// lock is a session-level advisory lock. As in PostgreSQL, it stacks: a session can
// acquire it again, and must then release it as often.
type lock struct {
	holder *backend
	depth  int
}

// tryLock acquires a lock for b unless another session holds it.
func (s *server) tryLock(b *backend, id lockID) bool {
	l := s.locks[id]
	if l == nil {
		s.locks[id] = &lock{b, 1}
		b.held = append(b.held, id)
		b.takes(id)
		return true
	}
	if l.holder != b {
		return false
	}
	l.depth++
	b.takes(id)
	s.world.checker.nestedCalls(b, l.depth)
	return true
}

// unlock releases a lock once and reports whether b held it.
func (s *server) unlock(b *backend, id lockID) bool {
	l := s.locks[id]
	if l == nil || l.holder != b {
		return false
	}
	if l.depth--; l.depth == 0 {
		delete(s.locks, id)
		s.freed(b, id)
		b.held = slices.DeleteFunc(b.held, func(other lockID) bool { return other == id })
	}
	return true
}

// holds reports whether b holds a lock.
func (s *server) holds(b *backend, id lockID) bool {
	l := s.locks[id]
	return l != nil && l.holder == b
}

// free releases a lock of a backend that has ended.
func (s *server) free(b *backend, id lockID) {
	if s.holds(b, id) {
		delete(s.locks, id)
		s.freed(b, id)
		s.ring()
	}
}
