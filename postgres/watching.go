package postgres

import "time"

// A node whose watch connection is down cannot detect deaths. It records this in
// its row, over the session connection, and its successor in the ring watches its
// predecessor until the connection is back.

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
