package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// termRow is the row of a role whose previous term has been closed.
type termRow struct {
	key         string
	term        int64
	node        *uuid.UUID
	lease       time.Duration
	lineage     string
	epoch       string
	endReason   string
	reservedFor *uuid.UUID
	reservation time.Duration // what is left of it
	nodeKnown   bool          // the registry has the node of the term
}

// clean reports whether the holder of the term closed it itself.
func (r termRow) clean() bool {
	switch tenure.EndReason(r.endReason) {
	case history.EndCrashed, history.EndLeaseExpired, history.EndServerChanged:
		return false
	}
	return true
}

// closeTerms ends the terms that the previous holders of roles left open, in a separate
// commit, and reads the rows.
func (s *session) closeTerms(got []lockRequest) (map[string]termRow, error) {
	roles, keys := make([]string, len(got)), make([]string, len(got))
	for i, w := range got {
		roles[i], keys[i] = w.role.Name(), w.key.String()
	}
	found := make(map[string]termRow, len(got))
	err := s.query(stmtClose, func(rows pgx.Rows) error {
		var (
			r           termRow
			role        string
			lease       int64
			reservation float64
		)
		err := rows.Scan(&role, &r.key, &r.term, &r.node, &lease, &r.lineage, &r.epoch, &r.endReason, &r.reservedFor, &reservation, &r.nodeKnown)
		r.lease = time.Duration(lease) * time.Millisecond
		r.reservation = fromMilliseconds(reservation)
		found[role] = r
		return err
	}, roles, keys, s.server.lineage(), s.server.epoch())
	return found, err
}

// begin begins the terms of held roles, sorted by name. A role that is skipped stays
// without a term: a fenced transaction of the old term holds its row or, if the
// rows were not examined, the term may have to wait.
func (s *session) begin(ready []*heldRole, examined bool) error {
	if len(ready) == 0 {
		return nil
	}
	roles := make([]string, len(ready))
	for i, h := range ready {
		roles[i] = h.role.Name()
	}
	node := s.opening.Node
	settling := s.opening.Timing.Settle > 0
	err := s.query(stmtBegin, func(rows pgx.Rows) error {
		var (
			role    string
			attempt = tenure.AcquireResult{Outcome: tenure.OutcomeGranted, NotDurable: true}
			vacant  float64
		)
		if err := rows.Scan(&role, &attempt.Term, &attempt.Previous, &attempt.AcquiredAt, &vacant); err != nil {
			return err
		}
		attempt.PrecedingVacancy = fromMilliseconds(vacant)
		h := s.heldRoles[role]
		h.term, h.attempt = attempt.Term, attempt
		delete(s.blocked, role)
		return nil
	}, roles, node.ID, node.Name, s.incarnation, s.opening.Timing.Lease.Milliseconds(), s.server.lineage(), s.server.epoch(),
		examined, s.server.byMigration, settling)
	if err != nil {
		for _, h := range ready { // rolled back, whatever rows were returned
			h.term = 0
		}
		return err
	}
	if !s.trying {
		s.backend.recent.add(node.ID, s.incarnation, ready)
	}
	return nil
}

func fromMilliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

func errRowMissing(role tenure.Role) error {
	return fmt.Errorf("%w: the row of %s was deleted, and with it the numbers of its terms", tenure.ErrLock, role)
}

func errKeyTaken(role tenure.Role, key, owner string) error {
	return fmt.Errorf("%w: %s cannot have the key %s, which is that of the role %s: two roles with one key would be two names for one lock; use that role, or another key",
		tenure.ErrKeyMismatch, role, key, owner)
}

// errKeyMismatch explains how to use the recorded key: derived from the name, or
// given.
func (s *session) errKeyMismatch(w lockRequest, recorded string) error {
	name := w.role.Name()
	flag, call := shellWord(name+"="+recorded), fmt.Sprintf("NamedRole(%q).WithKey(%s)", name, recorded)
	if tenure.NamedRole(name).LockKey(s.installation).String() == recorded {
		flag, call = shellWord(name), fmt.Sprintf("NamedRole(%q)", name)
	}
	return fmt.Errorf("%w: %s has the key %s in the database and %s here: use the first on every node, with --role %s, or in Go with %s",
		tenure.ErrKeyMismatch, w.role, recorded, w.key, flag, call)
}

// shellWord quotes a word for a shell if it must be.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=.,:/@+", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
