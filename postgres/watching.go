package postgres

import "github.com/exactly-one/tenure/postgres/internal/link"

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

// reportWatchDown writes a change of the watch connection's state into the node's row.
// After a failure it is called again before the next wait.
func (s *session) reportWatchDown() error {
	down := s.watch.down.Load()
	if down == s.reportedWatchDown {
		return nil
	}
	err := s.query(stmtWatching, nil, s.opening.Node.ID, s.incarnation, !down)
	if err == nil {
		err = s.query(stmtMoved, nil, s.backend.names.NodesChannel(), s.nodePayload())
	}
	if err != nil {
		s.log.Warn("writing whether this node watches failed", "watching", !down, "error", err)
		return lostOnly(err)
	}
	s.reportedWatchDown = down
	return nil
}
