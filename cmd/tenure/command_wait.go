package main

import (
	"time"

	"github.com/exactly-one/tenure/cmd/tenure/internal/guardian"
)

// awaitTrust waits until a command would not be asked to end as soon as it has
// started. It returns false if the seat ends instead.
func (t timing) awaitTrust(term guardian.Seat) bool {
	for term.Remaining() <= t.grace+t.lead {
		if !sleep(term, t.refresh/4) {
			return false
		}
	}
	return !ending(term)
}

// ending reports whether a term has ended or was asked to end.
func ending(term guardian.Seat) bool {
	select {
	case <-term.Stopping():
	case <-term.Context().Done():
	default:
		return false
	}
	return true
}

// sleep pauses; it returns false at once when the term ends or was asked to.
func sleep(term guardian.Seat, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-term.Stopping():
	case <-term.Context().Done():
	}
	return false
}
