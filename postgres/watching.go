package postgres

// A node whose watch connection is down sees nobody die. It says so in its row,
// on the session connection, and its successor in the ring watches in its place
// for as long.

// noteBlind records whether the watch connection is down and has the session
// tell the others.
func (w *watch) noteBlind(blind bool) {
	w.blind.Store(blind)
	w.session.news.announce()
}

// tellWatching tells the others whether this node watches, if that has changed.
// What fails for now is told before the next wait.
func (s *session) tellWatching() error {
	blind := s.watch.blind.Load()
	if blind == s.toldBlind {
		return nil
	}
	err := s.query(stmtWatching, nil, s.opening.Node.ID, s.incarnation, !blind)
	if err == nil {
		err = s.query(stmtMoved, nil, s.backend.names.nodesChannel())
	}
	if err != nil {
		s.log.Warn("telling the others whether this node watches failed", "watching", !blind, "error", err)
		return lostOnly(err)
	}
	s.toldBlind = blind
	return nil
}
