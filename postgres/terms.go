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
}

// clean reports whether the holder of the term closed it itself.
func (r termRow) clean() bool {
	switch tenure.EndReason(r.endReason) {
	case history.EndCrashed, history.EndLeaseExpired, history.EndServerChanged:
		return false
	}
	return true
}

// closeTerms ends the terms that the previous holders of roles left open, in a
// commit of its own, and reads the rows.
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
		err := rows.Scan(&role, &r.key, &r.term, &r.node, &lease, &r.lineage, &r.epoch, &r.endReason, &r.reservedFor, &reservation)
		r.lease = time.Duration(lease) * time.Millisecond
		r.reservation = fromMilliseconds(reservation)
		found[role] = r
		return err
	}, roles, keys, s.server.lineage(), s.server.epoch())
	return found, err
}

// earliest returns when the term of a role whose lock was acquired at lockedAt may
// begin, on the node's monotonic clock. If the last term was on another server, the
// old leader may not have noticed yet that its lock is gone.
//
// That wait counts from when this server's life began and not from lockedAt:
// otherwise each candidate would wait again for the time that another one has
// already waited. The old leader's trust ends one lease after the last heartbeat
// that the earlier life acknowledged, and that life was over when this one began: a
// restarted server starts when the processes of the earlier one are gone, and after
// a crash, or on a promoted replica, the first session inserts the row again. A
// promoted replica cannot know of an old primary that continues: FailoverWait is
// for that.
func (s *session) earliest(row termRow, lockedAt time.Duration) time.Duration {
	timing := s.opening.Timing
	if row.term == 0 {
		// The role is new here. On a server whose locks were lost that may be
		// because its row was lost too, and with it the leader's lease.
		if s.server.byMigration {
			return lockedAt
		}
		return max(lockedAt, s.server.bornAt+max(timing.Lease, s.server.longest, timing.FailoverWait))
	}
	var wait time.Duration
	if !row.clean() {
		wait = timing.Settle
	}
	if row.lineage == s.server.lineage() && row.epoch == s.server.epoch() {
		return lockedAt + wait
	}
	// The same node may begin another term immediately: its old work has returned, or
	// it would not campaign.
	if row.lineage == s.server.lineage() && row.node != nil && *row.node == s.opening.Node.ID {
		return lockedAt
	}
	began := s.server.upAt
	if row.lineage != s.server.lineage() && strings.HasSuffix(row.epoch, "/"+s.server.id.String()) {
		began = lockedAt // copied together with its rows: this server's life began at an unknown time
	}
	return max(lockedAt, began+max(wait, timing.Lease, row.lease, timing.FailoverWait))
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
			attempt = tenure.AcquireResult{Outcome: tenure.OutcomeGranted}
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
	// A term that only this server knows of has not begun. It cannot be undone
	// without another commit, so the session is given up with its locks.
	if err := s.warningAsError(stmtBegin); err != nil {
		return fmt.Errorf("%w: %w", tenure.ErrSessionLost, err)
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
