package incident

import (
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// WithoutLeader returns for how long a role was without a leader before a term: from when the
// previous leader could last act to when the next one could. reason is why the previous term
// ended. The result is negative if it is not known.
//
// After the end of its process, a leader could act until the lock was free. A silent
// leader, or one without its server, may have stopped at its last heartbeat. After
// completed work, a role is at rest.
func WithoutLeader(reason tenure.EndReason, next history.Term) time.Duration {
	if reason == history.EndCompleted {
		return -1
	}
	if reason == history.EndCrashed && next.PrecedingVacancy >= 0 {
		return next.PrecedingVacancy
	}
	return max(next.PrecedingVacancy, next.PrecedingSilence)
}

// WithoutLeader returns for how long the role of a move was without a leader, negative if that
// is not known.
func (m Move) WithoutLeader() time.Duration { return WithoutLeader(m.From.Reason, m.To) }

// Planned reports whether a term ended by intention of its node or of an operator. Its
// next term is a move and no failover. A leader whose work ended too early gave up its role
// with a cause.
func Planned(t history.Term) bool {
	return t.Reason != "" && !unclean(t.Reason) && (t.Reason != history.EndResigned || t.Cause == "")
}
