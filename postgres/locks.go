package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/records"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// take tries to acquire the locks of roles with distinct keys, none of which is held. It
// begins their terms unless they must wait. It fills in the attempts of roles left to
// other nodes or led by other sessions. If the statement fails, take releases the locks
// the server may have granted nevertheless, or the session is lost.
func (s *session) take(all []lockRequest, attempts []tenure.AcquireResult) error {
	requests := make(map[string]lockRequest, len(all))
	for _, w := range all {
		requests[w.role.Name()] = w
	}
	var held []*heldRole
	err := s.callTake(all, false, func(role string, attempt tenure.AcquireResult, ledBy int32) {
		w := requests[role]
		if attempt.RetryIn > 0 {
			attempts[w.index] = attempt
			return
		}
		if ledBy != 0 {
			attempts[w.index].Led = true
			s.elsewhere.found(w, ledBy)
			return
		}
		h := &heldRole{role: w.role, key: w.key, leader: w.leader}
		h.begin(attempt)
		held = append(held, h)
	})
	if err == nil {
		now := s.opening.Clock.Now().Mono
		for _, h := range held {
			h.lockedAt = now
			s.heldRoles[h.role.Name()] = h
			s.keys[h.key] = struct{}{}
		}
		s.table.add(len(held))
		s.begun(held)
		return nil
	}
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	// A failed statement keeps its acquired session-level locks.
	if lost := s.reconcile(); lost != nil {
		return errors.Join(lost, err)
	}
	if sqlstate.Has(err, sqlstate.OutOfMemory) {
		if lost := lostOnly(s.recount()); lost != nil {
			return errors.Join(lost, err)
		}
		err = fmt.Errorf("%w: %w", s.table.full(len(all)), err)
	}
	return err
}

// unlock releases the locks of held roles. An error ends the session: a lock may still be held.
func (s *session) unlock(heldRoles []*heldRole) error {
	if len(heldRoles) == 0 {
		return nil
	}
	var keys keyArrays
	for _, h := range heldRoles {
		keys.add(h.key)
	}
	missing := 0
	err := s.eachKey(stmtUnlock, stmtUnlockPairs, keys, func(_ tenure.LockKey, held bool) {
		if !held {
			missing++
		}
	})
	switch {
	case errors.Is(err, tenure.ErrSessionLost):
		return err
	case err != nil:
		return fmt.Errorf("%w: locks may be left over: %w", tenure.ErrSessionLost, err)
	case missing > 0:
		return superseded("%d locks were gone before they were released", missing)
	}
	s.forgetReleased(heldRoles)
	return nil
}

// reconcile compares the locks of the session with its records, and unlocks the others,
// as often as they are held.
func (s *session) reconcile() error {
	for range 2 { // once to find, once to prove
		extra, err := s.extraLocks()
		if err != nil {
			return fmt.Errorf("%w: locks may be left over: %w", tenure.ErrSessionLost, err)
		}
		if len(extra.single)+len(extra.a) == 0 {
			return nil
		}
		if err := s.eachKey(stmtUnlock, stmtUnlockPairs, extra, func(tenure.LockKey, bool) {}); err != nil {
			return fmt.Errorf("%w: locks may be left over: %w", tenure.ErrSessionLost, err)
		}
	}
	return fmt.Errorf("%w: locks are left over", tenure.ErrSessionLost)
}

// ownLocks lists the advisory locks of the session.
func (s *session) ownLocks() (map[tenure.LockKey]struct{}, error) {
	held := map[tenure.LockKey]struct{}{}
	err := s.query(stmtOwnLocks, func(rows pgx.Rows) error {
		var r records.LockRow
		if err := rows.Scan(&r.High, &r.Low, &r.Kind); err != nil {
			return err
		}
		held[r.Key()] = struct{}{}
		return nil
	})
	return held, err
}

// extraLocks lists the session's locks beyond the roles', its node's and the
// installation's.
func (s *session) extraLocks() (keyArrays, error) {
	held, err := s.ownLocks()
	var extra keyArrays
	for key := range held {
		if _, known := s.keys[key]; !known {
			extra.add(key)
		}
	}
	return extra, err
}

// keyArrays are lock keys as the parameters of statements.
type keyArrays struct {
	single []int64
	a, b   []int32
}

func (k *keyArrays) add(key tenure.LockKey) {
	if key.Pair {
		k.a = append(k.a, int32(key.Key))
		k.b = append(k.b, key.Key2)
	} else {
		k.single = append(k.single, key.Key)
	}
}

// eachKey runs a statement for single keys and one for pairs, as needed.
func (s *session) eachKey(singles, pairs link.Statement, keys keyArrays, each func(tenure.LockKey, bool)) error {
	if len(keys.single) > 0 {
		err := s.query(singles, func(rows pgx.Rows) error {
			var (
				key tenure.LockKey
				ok  bool
			)
			err := rows.Scan(&key.Key, &ok)
			each(key, ok)
			return err
		}, keys.single)
		if err != nil {
			return err
		}
	}
	if len(keys.a) > 0 {
		return s.query(pairs, func(rows pgx.Rows) error {
			var (
				a, b int32
				ok   bool
			)
			err := rows.Scan(&a, &b, &ok)
			each(tenure.LockKey{Key: int64(a), Key2: b, Pair: true}, ok)
			return err
		}, keys.a, keys.b)
	}
	return nil
}

// forgetReleased removes roles from the held ones if their locks are free.
func (s *session) forgetReleased(heldRoles []*heldRole) {
	s.freedAt = time.Now()
	s.table.add(-len(heldRoles))
	for _, h := range heldRoles {
		delete(s.heldRoles, h.role.Name())
		delete(s.keys, h.key)
		if h.term == 0 {
			delete(s.known, h.role.Name()) // read its row again the next time
		}
	}
}
