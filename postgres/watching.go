package postgres

import (
	"sync"
	"time"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// A node whose watch connection is down cannot detect deaths. It records this in
// its row, over the session connection, and its successor in the ring watches its
// predecessor until the connection is back.

// setWatchDown records whether the watch connection is down and wakes the session to
// report it. Without the watch a node can become silent unnoticed, so any node may have
// changed.
func (w *watch) setWatchDown(down bool) {
	w.down.Store(down)
	w.session.listener.changedNodes.Note(link.AnyNode)
	w.session.listener.Announce()
}

// reportPause is the least time between a failed report and the next one. Notifications
// that arrive in a flood would otherwise repeat it without a pause.
const reportPause = time.Second

// reportWatchDown writes a change of the watch connection's state into the node's row.
// After a failure it does so before a later wait.
func (s *session) reportWatchDown() error {
	down, now := s.watch.down.Load(), s.opening.Clock.Now().Mono
	if down == s.reportedWatchDown || s.reportFailed > 0 && now-s.reportFailed < reportPause {
		return nil
	}
	err := s.query(stmtWatching, nil, s.opening.Node.ID, s.incarnation, !down)
	if err == nil {
		err = s.query(stmtMoved, nil, s.backend.names.NodesChannel(), s.nodePayload())
	}
	if err != nil {
		s.reportFailed = max(1, now)
		s.log.Warn("writing whether this node watches failed", "watching", !down, "error", err)
		return lostOnly(err)
	}
	s.reportedWatchDown = down
	return nil
}

// The oldest node of the ring watches the youngest: each joining node is its new
// predecessor. At rest its watch seldom reads the ring. So when its session is notified of
// a possible join, the session cancels the wait of the watch function. The function
// catches the cancellation and reads the ring. The predecessor of any other node changes
// only by a death, or while the node is young and its watch reads often.

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
