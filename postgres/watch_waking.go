package postgres

import (
	"sync"
	"time"
)

// watchWaking cancels the wait of a call in progress. The next statement on the watch
// connection begins only when a cancellation has been answered, so none reaches it. It is
// safe for concurrent use.
type watchWaking struct {
	mu      sync.Mutex
	pid     uint32        // of the call in progress; 0 if there is none
	last    time.Time     // of the last cancellation
	pending chan struct{} // closed when the last cancellation has been answered
}

// wakeInterval is the least time between two cancellations: after one the watch function
// reads often for half a second.
const wakeInterval = 400 * time.Millisecond

// begin is called before a call of the watch function on a server process.
func (w *watchWaking) begin(pid uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pid, w.last = pid, time.Time{}
}

// end is called after it, and waits for a cancellation, but not for a session that hangs.
// It reports whether the call was canceled.
func (w *watchWaking) end() (canceled bool) {
	w.mu.Lock()
	w.pid, canceled = 0, !w.last.IsZero()
	pending := w.pending
	w.mu.Unlock()
	if pending == nil {
		return canceled
	}
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-pending:
	case <-limit.C:
	}
	return canceled
}

// wake calls cancel with the process of the call in progress. It does nothing without a
// call, or less than wakeInterval after the last cancellation.
func (w *watchWaking) wake(cancel func(pid uint32) error) error {
	w.mu.Lock()
	pid, now := w.pid, time.Now()
	if pid == 0 || now.Sub(w.last) < wakeInterval {
		w.mu.Unlock()
		return nil
	}
	answered := make(chan struct{})
	w.last, w.pending = now, answered
	w.mu.Unlock()
	defer close(answered)
	return cancel(pid)
}
