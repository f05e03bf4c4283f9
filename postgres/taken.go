package postgres

import (
	"sync"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/postgres/internal/records"
)

// takenRequests are the ids of already returned requests for nodes. They may still be in
// the table, because their removal failed. They are not returned again.
type takenRequests struct {
	mu     sync.Mutex
	byNode map[uuid.UUID][]int64
}

func (t *takenRequests) of(node uuid.UUID) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]int64{}, t.byNode[node]...)
}

// set replaces the ids of a node.
func (t *takenRequests) set(node uuid.UUID, ids []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(ids) == 0 {
		delete(t.byNode, node)
		return
	}
	if t.byNode == nil {
		t.byNode = map[uuid.UUID][]int64{}
	}
	t.byNode[node] = ids
}

// removeTaken removes the requests for the node: newly returned ones, and ones returned
// before.
func (s *session) removeTaken(ids, known []int64) error {
	if len(ids) == 0 {
		return nil
	}
	node := s.opening.Node.ID
	s.backend.taken.set(node, ids)
	err := s.query(stmtTaken, nil, node, ids, known)
	if err == nil {
		s.backend.taken.set(node, nil)
	}
	return err
}

// offers are the offers that a session has taken and must answer.
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
