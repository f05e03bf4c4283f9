package postgres

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// resignation is what the statements about the ends of terms take.
type resignation struct {
	seats          []*seat // all, also those without a term
	roles, reasons []string
	askers         []string
	terms, reserve []int64
	targets        []*uuid.UUID
}

func (s *session) resignation(releases []tenure.ReleaseRequest) resignation {
	var all resignation
	for _, r := range releases {
		seat := s.seats[r.Role.Name()]
		if seat == nil {
			continue
		}
		all.seats = append(all.seats, seat)
		if seat.term == 0 {
			continue
		}
		var target *uuid.UUID
		if r.Target != uuid.Nil {
			target = &r.Target
		}
		all.roles, all.terms = append(all.roles, seat.role.Name()), append(all.terms, seat.term)
		all.reasons = append(all.reasons, string(r.Reason))
		all.targets, all.reserve = append(all.targets, target), append(all.reserve, r.Reservation.Milliseconds())
		all.askers = append(all.askers, r.By)
	}
	return all
}

// Release implements [tenure.Session]. Usually it is one statement; if that
// fails, each step is tried on its own, since neither a row that cannot be
// written nor a full queue of notifications may keep a role locked.
func (s *session) Release(releases []tenure.ReleaseRequest) error {
	all := s.resignation(releases)
	if len(all.seats) == 0 {
		return nil
	}
	var keys keyArrays
	for _, seat := range all.seats {
		keys.add(seat.key)
	}
	missing := 0
	err := s.query(stmtResign, func(rows pgx.Rows) error {
		var done bool
		err := rows.Scan(&done)
		if !done {
			missing++
		}
		return err
	}, all.roles, all.terms, all.reasons, all.targets, all.reserve, s.opening.Node.ID,
		keys.single, keys.a, keys.b, s.backend.names.channel(), all.askers)
	switch {
	case lostOnly(err) != nil:
		return err
	case err != nil:
		s.log.Warn("resigning in one statement failed", "roles", all.roles, "error", err)
		return s.releaseInSteps(all)
	case missing > 0:
		return superseded("%d locks were gone before they were released", missing)
	}
	s.vacated(all.seats)
	return nil
}

// releaseInSteps releases with a commit for each step. The statement that failed
// may have freed locks.
func (s *session) releaseInSteps(all resignation) error {
	if len(all.roles) > 0 {
		err := s.query(stmtEnd, nil, all.roles, all.terms, all.reasons, all.targets, all.reserve, s.opening.Node.ID, all.askers)
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
	var left, freed []*seat
	for _, seat := range all.seats {
		if _, locked := held[seat.key]; locked {
			left = append(left, seat)
		} else {
			freed = append(freed, seat)
		}
	}
	s.vacated(freed)
	if err := s.unlock(left); err != nil {
		return err
	}
	err = s.query(stmtNotify, nil, s.backend.names.channel())
	if err != nil && lostOnly(err) == nil { // the others find the roles vacant when they poll
		s.log.Warn("announcing vacant roles failed", "error", err)
	}
	return lostOnly(err)
}

// vacated forgets seats whose locks are free.
func (s *session) vacated(seats []*seat) {
	s.table.add(-len(seats))
	for _, seat := range seats {
		delete(s.seats, seat.role.Name())
		delete(s.keys, seat.key)
		if seat.term == 0 {
			delete(s.known, seat.role.Name()) // look at its row anew the next time
		}
	}
}
