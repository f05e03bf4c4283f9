package postgres

import (
	"sync"
	"time"
)

// The oldest node of the ring watches the youngest, so each node that joins is its new
// predecessor. At rest its watch seldom reads the ring. So when its session is notified
// that a node may have joined, the session cancels the wait of the watch function, which
// catches that and reads the ring. No other node does so: its predecessor changes only
// when that dies, or while the node is young, when its watch reads often.

// watchWaking cancels the wait of a call in progress. The next statement on the watch
// connection begins only when a cancellation has been answered, so none reaches it. It is
// safe for concurrent use.
type watchWaking struct {
	mu      sync.Mutex
	pid     uint32        // of the call in progress; 0 if there is none
	last    time.Time     // when that was last canceled
	pending chan struct{} // closed when the last cancellation has been answered
}

// wakeInterval is how long a cancellation suffices: the watch function reads often for
// half a second after it was canceled.
const wakeInterval = 400 * time.Millisecond

// begin is called before a call of the watch function on a server process.
func (w *watchWaking) begin(pid uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pid, w.last = pid, time.Time{}
}

// end is called after it, and waits for a cancellation, but not for a session that hangs.
func (w *watchWaking) end() {
	w.mu.Lock()
	w.pid = 0
	pending := w.pending
	w.mu.Unlock()
	if pending == nil {
		return
	}
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-pending:
	case <-limit.C:
	}
}

// wake calls cancel with the process of the call in progress, unless there is none or it
// was canceled a moment ago.
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

// wakeWatch wakes the watch of the oldest node if a node may have joined.
func (s *session) wakeWatch() error {
	if !s.listener.joined.Swap(false) || !s.silence.IsOldest() {
		return nil
	}
	err := s.watch.waking.wake(func(pid uint32) error { return s.query(stmtWake, nil, int32(pid)) })
	if err != nil {
		s.log.Warn("waking the watch failed; it notices a node that joined up to 2 s later", "error", err)
	}
	return lostOnly(err)
}
