package lead

import (
	"time"

	"github.com/exactly-one/tenure/internal/program/guardian"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// AwaitTrust waits until a command would not be asked to end as soon as it has
// started. It returns false if the term ends first.
func (t Timing) AwaitTrust(term guardian.Term) bool {
	for term.Remaining() <= t.Grace+t.Lead {
		if !Sleep(term, t.Refresh/4) {
			return false
		}
	}
	return !Ending(term)
}

// Ending reports whether a term has ended or is stopping.
func Ending(term guardian.Term) bool {
	return term.Context().Err() != nil || wakeup.Closed(term.Stopping())
}

// Sleep pauses. It returns false when the term has ended or is stopping.
func Sleep(term guardian.Term, pause time.Duration) bool {
	wakeup.Await(term.Context(), pause, term.Stopping())
	return !Ending(term)
}
