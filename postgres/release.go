package postgres

import (
	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Release implements [tenure.Session]: three commits, so that the record is
// there before the lock is free, and the lock is free before anyone is told.
func (s *session) Release(releases []tenure.Release) error {
	seats := make([]*seat, 0, len(releases))
	var (
		roles, reasons []string
		terms, reserve []int64
		targets        []*uuid.UUID
	)
	for _, r := range releases {
		seat := s.seats[r.Role.Name()]
		if seat == nil {
			continue
		}
		seats = append(seats, seat)
		if seat.term == 0 {
			continue
		}
		var target *uuid.UUID
		if r.For != uuid.Nil {
			target = &r.For
		}
		roles, terms, reasons = append(roles, seat.role.Name()), append(terms, seat.term), append(reasons, string(r.Reason))
		targets, reserve = append(targets, target), append(reserve, r.ReserveFor.Milliseconds())
	}
	if len(roles) > 0 {
		err := s.query(stmtEnd, nil, roles, terms, reasons, targets, reserve, s.opening.Node.ID)
		if lost := lostOnly(err); lost != nil {
			return lost
		}
		if err != nil { // the successor closes the terms instead
			s.log.Warn("recording the end of terms failed", "roles", roles, "error", err)
		}
	}
	if err := s.unlock(seats); err != nil || len(seats) == 0 {
		return err
	}
	err := s.query(stmtNotify, nil, s.backend.names.channel())
	if err != nil && lostOnly(err) == nil { // a full queue must not undo the resignation
		s.log.Warn("announcing vacant roles failed", "error", err)
	}
	return lostOnly(err)
}
