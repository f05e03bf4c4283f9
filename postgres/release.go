package postgres

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// resignation has the parameters of the statements to end terms with.
type resignation struct {
	heldRoles      []*heldRole // all, also without a term
	roles, reasons []string
	requesters     []string
	causes         []string
	terms, reserve []int64
	nextIn         []*int64 // milliseconds
	targets        []*uuid.UUID
}

func (s *session) resignation(releases []tenure.ReleaseRequest) (resignation, error) {
	var all resignation
	for _, r := range releases {
		h := s.heldRoles[r.Role.Name()]
		if h == nil {
			continue
		}
		// Invariant 4: the lock is held until the work of the role's term has returned.
		if r.Term != 0 && r.Term != h.term {
			return all, fmt.Errorf("%w: release of term %d of %s, but this session holds term %d", tenure.ErrSessionLost, r.Term, h.role, h.term)
		}
		all.heldRoles = append(all.heldRoles, h)
		if h.term == 0 {
			continue
		}
		var target *uuid.UUID
		if r.Target != uuid.Nil {
			target = &r.Target
		}
		all.roles, all.terms = append(all.roles, h.role.Name()), append(all.terms, h.term)
		all.reasons = append(all.reasons, string(r.Reason))
		all.targets, all.reserve = append(all.targets, target), append(all.reserve, r.Reservation.Milliseconds())
		all.requesters, all.causes = append(all.requesters, r.By), append(all.causes, r.Cause)
		var next *int64
		if r.NextIn > 0 {
			ms := r.NextIn.Milliseconds()
			next = &ms
		}
		all.nextIn = append(all.nextIn, next)
	}
	return all, nil
}

// Release implements [tenure.Session]. Usually it is one statement. If this fails, each
// step is tried separately, since neither an unwritable row nor a full queue of
// notifications may keep a role locked.
func (s *session) Release(releases []tenure.ReleaseRequest) error {
	all, err := s.resignation(releases)
	if err != nil || len(all.heldRoles) == 0 {
		return err
	}
	var keys keyArrays
	for _, h := range all.heldRoles {
		keys.add(h.key)
	}
	missing := 0
	err = s.query(stmtResign, func(rows pgx.Rows) error {
		var done bool
		err := rows.Scan(&done)
		if !done {
			missing++
		}
		return err
	}, all.roles, all.terms, all.reasons, all.targets, all.reserve, s.opening.Node.ID,
		keys.single, keys.a, keys.b, s.backend.names.ElectionsChannel(), all.requesters, all.causes, all.nextIn)
	switch {
	case lostOnly(err) != nil:
		return err
	case err != nil:
		s.log.Warn("resigning in one statement failed", "roles", all.roles, "error", err)
		return s.releaseInSteps(all)
	case missing > 0:
		return superseded("%d locks were gone before they were released", missing)
	}
	s.forgetReleased(all.heldRoles)
	return nil
}

// releaseInSteps releases with a commit for each step. The failed statement may have
// freed locks.
func (s *session) releaseInSteps(all resignation) error {
	if len(all.roles) > 0 {
		err := s.query(stmtEnd, nil, all.roles, all.terms, all.reasons, all.targets, all.reserve, s.opening.Node.ID, all.requesters, all.causes, all.nextIn)
		if lost := lostOnly(err); lost != nil {
			return lost
		}
		if err != nil { // the successor closes the terms instead
			s.log.Warn("recording the end of terms failed", "roles", all.roles, "error", err)
		}
	}
	held, err := s.ownLocks()
	if err != nil {
		return fmt.Errorf("%w: locks may be left over: %w", tenure.ErrSessionLost, err)
	}
	var left, freed []*heldRole
	for _, h := range all.heldRoles {
		if _, locked := held[h.key]; locked {
			left = append(left, h)
		} else {
			freed = append(freed, h)
		}
	}
	s.forgetReleased(freed)
	if err := s.unlock(left); err != nil {
		return err
	}
	err = s.query(stmtReleased, nil, s.backend.names.ElectionsChannel())
	if err != nil && lostOnly(err) == nil { // the others find the roles vacant when they poll
		s.log.Warn("announcing vacant roles failed", "error", err)
	}
	return lostOnly(err)
}
