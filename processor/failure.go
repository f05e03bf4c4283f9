package processor

import "errors"

// What a handler's error can say about who is to blame. Any other error counts
// as an attempt that failed, and Poison decides after MaxAttempts of them.
var (
	// ErrPoison in the error of a handler: the event can never be handled, so
	// that Poison decides at once. If it came with a batch, the events of the
	// batch are handled one at a time first, to find the one.
	ErrPoison = errors.New("the event cannot be handled")
	// ErrUnavailable in the error of a handler: something that it works with is
	// out of order, and no event is to blame. Attempts go on until that has
	// passed, with the pauses of Retry, and do not count as MaxAttempts.
	ErrUnavailable = errors.New("not available at present")
)

// blame counts an attempt that failed, and reports whether that of a single
// event, or one in which it could not be found, was the last.
func (l *loop) blame(events int, failure error) (last bool) {
	if l.state.errors == 0 {
		l.blamed = 0 // it was handled, or somebody has forgiven it
	}
	if errors.Is(failure, ErrUnavailable) {
		return false
	}
	l.blamed++
	return l.blamed >= l.config.MaxAttempts || events == 1 && errors.Is(failure, ErrPoison)
}
