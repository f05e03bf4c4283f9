package postgres

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// TryAcquire implements [tenure.Session].
func (s *session) TryAcquire(candidates []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	attempts := make([]tenure.AcquireResult, len(candidates))
	if err := s.reapIfWatchDown(); err != nil {
		return nil, err
	}

	// Only roles not yet held are locked. Invariant 5: a held role, also one with a
	// pending term, is never locked again.
	var locking []lockRequest
	s.reviewLedElsewhere()
	asked := make(map[tenure.LockKey]string, len(candidates))
	for i, c := range candidates {
		if err := s.holdsName(c.Role); err != nil {
			attempts[i] = tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: err}
			continue
		}
		key := c.Role.LockKey(s.installation)
		if _, own := s.heldRoles[c.Role.Name()]; own || s.elsewhere.leads(c) {
			continue
		}
		if other, twice := asked[key]; twice {
			attempts[i] = tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: install.KeyTaken(c.Role, key.String(), other)}
			continue
		}
		if _, held := s.keys[key]; held {
			attempts[i] = s.keyInUse(c.Role, key)
			continue
		}
		asked[key] = c.Role.Name()
		locking = append(locking, lockRequest{i, c.Role, key, c.YieldTerm, c.YieldFor, c.NodeName})
	}
	if err := s.lockAll(locking, attempts); err != nil {
		return nil, err
	}
	if err := s.examineAll(candidates, attempts); err != nil {
		return nil, err
	}
	if err := s.endWaits(); err != nil {
		return nil, err
	}
	if err := s.beginAll(candidates, attempts); err != nil {
		return nil, err
	}
	s.keepLeaders()
	return attempts, s.findHolders(candidates, attempts)
}

// keyInUse is the attempt for a role whose key this session holds for another purpose.
func (s *session) keyInUse(role tenure.Role, key tenure.LockKey) tenure.AcquireResult {
	for name, held := range s.heldRoles {
		if held.key == key {
			return tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: install.KeyTaken(role, key.String(), name)}
		}
	}
	return tenure.AcquireResult{} // busy
}

// holdsName returns an error for a name the database cannot store or distinguish from
// others: in SQL_ASCII the meaning of its bytes depends on the client.
func (s *session) holdsName(role tenure.Role) error {
	if s.server.Encoding == server.UnicodeEncoding {
		return nil
	}
	for _, r := range role.Name() {
		if r >= utf8.RuneSelf {
			return fmt.Errorf("%w: the name %q has characters that a database with the encoding %s does not keep: use ASCII, or a database with the encoding %s",
				tenure.ErrInvalidRole, role.Name(), s.server.Encoding, server.UnicodeEncoding)
		}
	}
	return nil
}

// lockAll tries to lock roles, and begins their terms unless they must wait. An error of
// the database fails the attempts. A returned error ends the session.
func (s *session) lockAll(all []lockRequest, attempts []tenure.AcquireResult) error {
	if len(all) == 0 {
		return nil
	}
	all, err := s.addRoles(all, attempts)
	if err != nil {
		failAll(all, attempts, err)
		return lostOnly(err)
	}
	room, err := s.table.room(s, len(all))
	if err != nil && room < len(all) {
		failAll(all[room:], attempts, err)
		if errors.Is(err, tenure.ErrSessionLost) {
			return err
		}
	}
	return s.lockInBatches(all[:room], attempts)
}

// lockInBatches acquires locks in as few statements as the server has room for. If there
// is no room for a statement, it releases all its locks, and half as many are tried.
// After such a smaller statement has succeeded, the remaining roles fail. This leaves
// room for other sessions.
func (s *session) lockInBatches(rest []lockRequest, attempts []tenure.AcquireResult) error {
	var full error
	for len(rest) > 0 {
		n := s.table.batch(len(rest))
		err := s.take(rest[:n], attempts)
		refused := errors.Is(err, ErrLockTableFull)
		if err == nil || refused {
			s.table.fit(n, !refused)
		}
		if refused && n > 1 {
			full = err
			continue
		}
		if err != nil {
			failAll(rest, attempts, err)
			return lostOnly(err)
		}
		rest = rest[n:]
		if full != nil {
			failAll(rest, attempts, full)
			return nil
		}
	}
	return nil
}

// addRoles makes rows for roles this session has not tried before. It returns the roles
// with the key of their row. The others have failed.
func (s *session) addRoles(all []lockRequest, attempts []tenure.AcquireResult) ([]lockRequest, error) {
	var unknown []lockRequest
	for _, w := range all {
		if known, found := s.known[w.role.Name()]; !found || known != w.key {
			unknown = append(unknown, w)
		}
	}
	if len(unknown) == 0 {
		return all, nil
	}
	recorded, err := s.learnKeys(unknown)
	if err != nil {
		return all, err
	}
	owners, err := s.ownersOfKeys(unknown, recorded)
	if err != nil {
		return all, err
	}
	failed := map[int]bool{}
	for _, w := range unknown {
		key := w.key.String()
		inRow, found := recorded[w.role.Name()]
		if owner, taken := owners[key]; taken {
			failed[w.index], attempts[w.index] = true, tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: install.KeyTaken(w.role, key, owner)}
		} else if found && inRow != key {
			failed[w.index], attempts[w.index] = true, tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: installation.KeyMismatch(w.role, inRow, s.installation)}
		} else if found {
			s.known[w.role.Name()] = w.key
		}
	}
	fitting := make([]lockRequest, 0, len(all))
	for _, w := range all {
		if !failed[w.index] {
			fitting = append(fitting, w)
		}
	}
	return fitting, nil
}

// ownersOfKeys returns, by key, the owners of the keys of roles without a row. Keys are
// unique, so the latter got no row.
func (s *session) ownersOfKeys(some []lockRequest, recorded map[string]string) (map[string]string, error) {
	var keys []string
	for _, w := range some {
		if _, found := recorded[w.role.Name()]; !found {
			keys = append(keys, w.key.String())
		}
	}
	owners := map[string]string{}
	if len(keys) == 0 {
		return owners, nil
	}
	err := s.query(stmtKeyOwners, func(rows pgx.Rows) error {
		var role, key string
		err := rows.Scan(&role, &key)
		owners[key] = role
		return err
	}, keys)
	return owners, err
}

// learnKeys reads the keys of roles first, since most roles have had a leader, and makes
// the missing rows. It returns the keys by role.
func (s *session) learnKeys(some []lockRequest) (map[string]string, error) {
	recorded, err := s.readKeys(some)
	if err == nil && len(recorded) < len(some) {
		roles, keys := make([]string, len(some)), make([]string, len(some))
		for i, w := range some {
			roles[i], keys[i] = w.role.Name(), w.key.String()
		}
		if err = s.query(stmtAddRoles, nil, roles, keys); err == nil {
			recorded, err = s.readKeys(some)
		}
	}
	return recorded, err
}

// readKeys reads the lock keys in the rows of roles.
func (s *session) readKeys(some []lockRequest) (map[string]string, error) {
	roles := make([]string, len(some))
	for i, w := range some {
		roles[i] = w.role.Name()
	}
	keys := make(map[string]string, len(some))
	err := s.query(stmtRoleKeys, func(rows pgx.Rows) error {
		var role, key string
		err := rows.Scan(&role, &key)
		keys[role] = key
		return err
	}, roles)
	return keys, err
}

// beginAll begins the terms of locked candidates after their waits, and fills in their
// attempts.
func (s *session) beginAll(candidates []tenure.AcquireRequest, attempts []tenure.AcquireResult) error {
	now := s.opening.Clock.Now().Mono
	var ready []*heldRole
	for _, c := range candidates {
		held := s.heldRoles[c.Role.Name()]
		if held != nil && held.term == 0 && held.examined && held.wait.until <= now {
			ready = append(ready, held)
		}
	}
	slices.SortFunc(ready, byRole)
	failure := s.begin(ready)
	if lost := lostOnly(failure); lost != nil {
		return lost
	}
	if failure != nil {
		if err := s.unlock(ready); err != nil {
			return err
		}
	}
	for i, c := range candidates {
		held := s.heldRoles[c.Role.Name()]
		switch {
		case failure != nil && slices.ContainsFunc(ready, func(r *heldRole) bool { return r.role == c.Role }):
			attempts[i] = tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: failure}
		case held == nil: // set before, or busy
		case held.term > 0:
			attempts[i] = held.granted()
		case held.wait.until > now:
			attempts[i] = tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: s.retryIn(held, now)}
		default:
			attempts[i] = tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: s.fenced(held), Fenced: true}
		}
	}
	return nil
}

// findHolders reads the last leaders of the busy roles, if their candidates ask for them.
func (s *session) findHolders(candidates []tenure.AcquireRequest, attempts []tenure.AcquireResult) error {
	var roles []string
	for i, c := range candidates {
		if c.Recovering && attempts[i].Outcome == tenure.OutcomeHeld {
			roles = append(roles, c.Role.Name())
		}
	}
	if len(roles) == 0 {
		return nil
	}
	holders := make(map[string]uuid.UUID, len(roles))
	err := s.query(stmtHolders, func(rows pgx.Rows) error {
		var (
			role string
			node uuid.UUID
		)
		err := rows.Scan(&role, &node)
		holders[role] = node
		return err
	}, roles)
	if err != nil {
		s.log.Warn("looking up the holders of roles failed", "error", err)
		return lostOnly(err)
	}
	for i, c := range candidates {
		if c.Recovering && attempts[i].Outcome == tenure.OutcomeHeld {
			attempts[i].Holder = holders[c.Role.Name()]
		}
	}
	return nil
}

// fenced records a transaction of another session in the way of a role's term, and
// returns when to try again.
func (s *session) fenced(held *heldRole) time.Duration {
	const first, longest = 2 * time.Millisecond, 50 * time.Millisecond
	now := s.opening.Clock.Now().Mono
	since := s.blocked.Since(held.role.Name(), held.previous, now)
	delay := min(longest, first<<min(held.skipped, 10))
	held.skipped++
	if now-since >= s.opening.Timing.FenceTimeout {
		s.terminator.end(held.role.Name(), held.previous)
	}
	return delay
}
