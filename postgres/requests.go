package postgres

import (
	"cmp"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/records"
)

// Requests implements [tenure.Session]. It removes requests for ended terms and does not
// return them. It answers offers of roles. If Wait has returned for another reason, it
// does not ask the server.
func (s *session) Requests() ([]tenure.Request, error) {
	woken, reported := s.woken, s.listener.requests.Swap(false)
	s.woken = false
	if woken && !reported {
		return nil, nil
	}
	type row struct {
		id, term int64
		request  tenure.Request
	}
	var found []row
	err := s.query(stmtRequests, func(rows pgx.Rows) error {
		var (
			r      row
			target *uuid.UUID
		)
		err := rows.Scan(&r.request.Kind, &r.request.Role, &r.term, &target, &r.request.Force, &r.request.By, &r.request.At, &r.id)
		if target != nil {
			r.request.Target = *target
		}
		found = append(found, r)
		return err
	}, s.opening.Node.ID)
	if err != nil {
		return nil, err
	}
	var requests []tenure.Request
	var forNode []int64
	var offered offers
	slices.SortFunc(found, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	known := s.backend.taken.Of(s.opening.Node.ID)
	for _, r := range found {
		if r.request.Role == "" { // for the node
			forNode = append(forNode, r.id)
			if r.request.Node = s.opening.Node.ID; !slices.Contains(known, r.id) {
				requests = append(requests, r.request)
			}
			continue
		}
		if r.request.Kind == records.KindOffer {
			offered.add(s, r.id, r.request.Role)
			continue
		}
		if held := s.heldRoles[r.request.Role]; held != nil && held.term == r.term {
			requests = append(requests, r.request)
		}
	}
	err = s.removeTaken(forNode, known)
	if lostOnly(err) != nil {
		return requests, err // trust ends before anything else
	}
	return requests, errors.Join(err, s.answer(offered))
}

// removeTaken removes the requests for the node: newly returned ones, and ones returned
// before.
func (s *session) removeTaken(ids, known []int64) error {
	if len(ids) == 0 {
		return nil
	}
	node := s.opening.Node.ID
	s.backend.taken.Set(node, ids)
	err := s.query(stmtTaken, nil, node, ids, known)
	if err == nil {
		s.backend.taken.Set(node, nil)
	}
	return err
}

// offers are the offers a session has taken and must answer.
type offers struct {
	ids            []int64
	roles, answers []string
}

func (o *offers) add(s *session, id int64, role string) {
	answer := records.AnswerAccept
	if campaigns := s.opening.Campaigns; campaigns != nil && !campaigns(role) {
		answer = records.AnswerDecline
	}
	o.ids, o.roles, o.answers = append(o.ids, id), append(o.roles, role), append(o.answers, answer)
}

// answer records the answers. If it fails, the requesters get none and the leaders
// keep the roles.
func (s *session) answer(o offers) error {
	if len(o.ids) == 0 {
		return nil
	}
	err := s.query(stmtAnswer, nil, o.answers, o.roles, o.ids, uuid.Nil)
	if err != nil && lostOnly(err) == nil {
		s.log.Warn("answering offers of roles failed", "roles", o.roles, "error", err)
	}
	return lostOnly(err)
}
