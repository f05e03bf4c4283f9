package postgres

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// heldRole is a role with its lock held by this session.
type heldRole struct {
	role     tenure.Role
	key      tenure.LockKey
	leader   string        // see tenure.AcquireRequest.NodeName
	lockedAt time.Duration // on the node's monotonic clock
	wait     termWait
	examined bool  // the row was read: wait and previous are known
	skipped  int32 // how often a transaction was in the way
	previous int64 // the number of the last term, once it is known

	term       int64 // 0 while Waiting
	acquiredAt time.Time
	vacancy    time.Duration
}

// begin records a begun term; other results change nothing.
func (h *heldRole) begin(result tenure.AcquireResult) {
	if result.Outcome == tenure.OutcomeGranted {
		h.previous, h.term, h.acquiredAt, h.vacancy = result.Previous, result.Term, result.AcquiredAt, result.PrecedingVacancy
	}
}

// granted is the result for the begun term.
func (h *heldRole) granted() tenure.AcquireResult {
	return tenure.AcquireResult{
		Outcome: tenure.OutcomeGranted, Term: h.term, Previous: h.previous, AcquiredAt: h.acquiredAt, PrecedingVacancy: h.vacancy, NotDurable: true,
	}
}

// lockRequest is a role to lock: the candidate of this index.
type lockRequest struct {
	index int
	role  tenure.Role
	key   tenure.LockKey

	yieldTerm int64
	yieldFor  time.Duration
	leader    string // see tenure.AcquireRequest.NodeName
}

// failAll sets the attempts of candidates to one error.
func failAll(some []lockRequest, attempts []tenure.AcquireResult, err error) {
	for _, w := range some {
		attempts[w.index] = tenure.AcquireResult{Outcome: tenure.OutcomeFailed, Err: err}
	}
}

func byRole(a, b *heldRole) int { return cmp.Compare(a.role.Name(), b.role.Name()) }

// termWait is the wait before a term may begin.
type termWait struct {
	until   time.Duration // on the node's monotonic clock, at the latest
	reunion bool          // over when all nodes are back, and after has passed
	after   time.Duration
}

// termRow is the row of a role after its previous term has been closed.
type termRow struct {
	key         string
	term        int64
	node        *uuid.UUID
	lease       time.Duration
	lineage     string
	epoch       string
	endReason   string
	reservedFor *uuid.UUID
	reservation time.Duration // the rest of it
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

// remnants are leftovers of earlier sessions. A joining session may have to handle them.
type remnants struct {
	own    bool // the node has a row or requests
	others bool // see sweepNodes
}
