package postgres

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/memory"
)

// closeTerms ends the open terms of previous holders, in a separate commit, and reads the
// rows.
func (s *session) closeTerms(got []lockRequest) (map[string]termRow, error) {
	roles, keys := make([]string, len(got)), make([]string, len(got))
	for i, w := range got {
		roles[i], keys[i] = w.role.Name(), w.key.String()
	}
	found := make(map[string]termRow, len(got))
	dead, deadSince := s.deaths.Arguments()
	err := s.query(stmtClose, func(rows pgx.Rows) error {
		var (
			r           termRow
			role        string
			lease       int64
			reservation float64
		)
		err := rows.Scan(&role, &r.key, &r.term, &r.node, &lease, &r.lineage, &r.epoch, &r.endReason, &r.reservedFor, &reservation, &r.nodeKnown)
		r.lease = time.Duration(lease) * time.Millisecond
		r.reservation = link.FromMilliseconds(reservation)
		found[role] = r
		return err
	}, roles, keys, s.server.Lineage(), s.server.Epoch(), dead, deadSince)
	return found, err
}

// begin begins the terms of held, examined roles. A skipped role stays without a term: a
// fenced transaction of the old term holds its row.
func (s *session) begin(ready []*heldRole) error {
	if len(ready) == 0 {
		return nil
	}
	all := make([]lockRequest, len(ready))
	for i, h := range ready {
		all[i] = lockRequest{role: h.role, key: h.key, leader: h.leader}
	}
	begun := make(map[string]tenure.AcquireResult, len(ready))
	err := s.callTake(all, true, func(role string, attempt tenure.AcquireResult, _ int32) { begun[role] = attempt })
	if err != nil {
		return err
	}
	for _, h := range ready {
		h.begin(begun[h.role.Name()])
	}
	s.begun(ready)
	return nil
}

// begun records the begun terms of some roles.
func (s *session) begun(some []*heldRole) {
	var begun []memory.RecentTerm
	for _, h := range some {
		if h.term > 0 {
			s.blocked.Forget(h.role.Name())
			s.terminator.begun(h.role.Name(), h.previous, h.term)
			begun = append(begun, memory.RecentTerm{Role: h.role.Name(), Number: h.term, Incarnation: s.incarnation, AcquiredAt: h.acquiredAt, Vacancy: h.vacancy, Leader: h.leader})
		}
	}
	if !s.trying {
		s.backend.recent.Add(s.opening.Node.ID, begun)
	}
}

// callTake calls the function {take}: see its comment in the migration. With examined,
// the session has the locks already. It calls each for three kinds of roles:
//
//   - a locked role, with its term if the term has begun;
//   - a role left to other nodes, with RetryIn;
//   - a role led by a living session, with the session in ledBy.
func (s *session) callTake(all []lockRequest, examined bool, each func(role string, attempt tenure.AcquireResult, ledBy int32)) error {
	node, timing := s.opening.Node, s.opening.Timing
	wanted := takeArguments(all)
	dead, deadSince := s.deaths.Arguments()
	var space *int32
	if s.elsewhere.asks && len(dead) == 0 { // a node that has noticed a death should be fast
		space = &s.space
	}
	return s.query(stmtTake, func(rows pgx.Rows) error {
		var (
			role         string
			attempt      tenure.AcquireResult
			acquiredAt   *time.Time
			vacant, left float64
			ledBy        int32
		)
		if err := rows.Scan(&role, &attempt.Term, &attempt.Previous, &acquiredAt, &vacant, &left, &ledBy); err != nil {
			return err
		}
		switch {
		case attempt.Term > 0 && acquiredAt == nil:
			return fmt.Errorf("the server began term %d of %q at no time", attempt.Term, role)
		case left > 0:
			attempt = tenure.AcquireResult{Outcome: tenure.OutcomeHeld, RetryIn: link.FromMilliseconds(left)}
		case attempt.Term > 0:
			attempt.Outcome, attempt.NotDurable = tenure.OutcomeGranted, true
			attempt.AcquiredAt, attempt.PrecedingVacancy = *acquiredAt, link.FromMilliseconds(vacant)
		}
		each(role, attempt, ledBy)
		return nil
	}, append(wanted, node.ID, leaderNames(all, node.Name), s.incarnation, timing.Lease.Milliseconds(),
		s.server.Lineage(), s.server.Epoch(), examined, s.server.ByMigration, timing.Settle > 0, dead, deadSince, space)...)
}

// takeArguments are the arguments of the function for the roles. An array of only null or
// 0 is empty: the server adds nulls.
func takeArguments(all []lockRequest) []any {
	n := len(all)
	roles, keys := make([]string, n), make([]int64, n)
	var yieldTerms, yieldFor []int64
	pairs := false
	for i, w := range all {
		roles[i], keys[i] = w.role.Name(), w.key.Key
		pairs = pairs || w.key.Pair
		if w.yieldFor > 0 && yieldTerms == nil {
			yieldTerms, yieldFor = make([]int64, n), make([]int64, n)
		}
		if w.yieldFor > 0 {
			yieldTerms[i], yieldFor[i] = w.yieldTerm, min(w.yieldFor.Milliseconds(), math.MaxInt32) // the parameter is an integer
		}
	}
	if !pairs {
		return []any{roles, keys, noPairs, noPairs, yieldTerms, yieldFor}
	}
	singles, firsts, seconds := make([]*int64, n), make([]*int32, n), make([]*int32, n)
	for i, w := range all {
		if w.key.Pair {
			first := int32(w.key.Key)
			firsts[i], seconds[i] = &first, &all[i].key.Key2
		} else {
			singles[i] = &keys[i]
		}
	}
	return []any{roles, singles, firsts, seconds, yieldTerms, yieldFor}
}

// leaderNames returns the names of the leaders for the records: own alone, unless an agent
// takes roles for its nodes.
func leaderNames(all []lockRequest, own string) []string {
	if !slices.ContainsFunc(all, func(w lockRequest) bool { return w.leader != "" }) {
		return []string{own}
	}
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = cmp.Or(w.leader, own)
	}
	return names
}

func errRowMissing(role tenure.Role) error {
	return fmt.Errorf("%w: the row of %s was deleted, and with it the numbers of its terms", tenure.ErrLock, role)
}
