package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/installation"
)

// examineAll examines the rows of locked roles without an immediate term. It unlocks the
// roles this session cannot lead.
func (s *session) examineAll(candidates []tenure.AcquireRequest, attempts []tenure.AcquireResult) error {
	var all []lockRequest
	for i, c := range candidates {
		if held := s.heldRoles[c.Role.Name()]; held != nil && held.term == 0 && !held.examined {
			all = append(all, lockRequest{index: i, role: held.role, key: held.key})
		}
	}
	if len(all) == 0 {
		return nil
	}
	unfit, err := s.examine(all, attempts)
	if lost := lostOnly(err); lost != nil {
		return lost
	}
	if err != nil {
		failAll(all, attempts, err)
		unfit = all
	}
	heldRoles := make([]*heldRole, len(unfit))
	for i, w := range unfit {
		heldRoles[i] = s.heldRoles[w.role.Name()]
	}
	return s.unlock(heldRoles)
}

// examine closes the previous terms of locked roles, and decides from their rows when the
// new terms may begin. Rows written by another session are left for the next attempt. It
// returns the roles to unlock again, with their attempts set.
func (s *session) examine(all []lockRequest, attempts []tenure.AcquireResult) (unfit []lockRequest, err error) {
	rows, err := s.closeTerms(all)
	if err != nil {
		return nil, err
	}
	var skipped []lockRequest
	for _, w := range all {
		row, found := rows[w.role.Name()]
		switch {
		case !found:
			skipped = append(skipped, w)
			continue
		case row.key != w.key.String():
			delete(s.known, w.role.Name()) // the key has changed since it was read
			attempts[w.index] = tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: installation.KeyMismatch(w.role, row.key, s.installation)}
		case row.reservedFor != nil && *row.reservedFor != s.opening.Node.ID && row.reservation > 0:
			attempts[w.index] = tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: row.reservation}
		default:
			held := s.heldRoles[w.role.Name()]
			held.examined = true
			held.previous = row.term
			held.wait = s.waitBefore(row, held.lockedAt)
			continue
		}
		unfit = append(unfit, w)
	}
	missing, err := s.missingRows(skipped)
	for _, w := range missing {
		attempts[w.index] = tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: errRowMissing(w.role)}
	}
	return append(unfit, missing...), err
}

// missingRows returns the roles without a row, and records the last terms of the others.
func (s *session) missingRows(some []lockRequest) ([]lockRequest, error) {
	if len(some) == 0 {
		return nil, nil
	}
	roles := make([]string, len(some))
	for i, w := range some {
		roles[i] = w.role.Name()
	}
	there := make(map[string]struct{}, len(some))
	err := s.query(stmtLastTerms, func(rows pgx.Rows) error {
		var (
			role string
			term int64
		)
		if err := rows.Scan(&role, &term); err != nil {
			return err
		}
		there[role] = struct{}{}
		s.heldRoles[role].previous = term
		return nil
	}, roles)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(some, func(w lockRequest) bool {
		_, found := there[w.role.Name()]
		return found
	}), nil
}
