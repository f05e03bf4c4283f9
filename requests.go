package tenure

// handleRequests reads the requests for this node and its roles, and starts to
// handle them. Those for the node outlive the session.
func (s *session) handleRequests() error {
	n := s.node
	n.mu.Lock()
	s.requestsPending = false
	n.mu.Unlock()
	requests, lost := s.takeRequests()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range requests {
		if r.Kind == RequestDrain || r.Kind == RequestUndrain {
			n.handleNodeRequestLocked(r)
			continue
		}
		e := n.elections[r.Role]
		if s.ended || lost != nil || e == nil {
			continue // the term that the request is about is over
		}
		n.log.Info("received a request for a role", "role", r.Role, "kind", r.Kind, "by", r.By, "target", r.Target)
		if r.Kind == RequestStepDown || r.Kind == RequestHandOver && n.validateTarget(r.Target) == nil {
			e.beginStepDownLocked(r.termEnd())
		}
	}
	return lost
}

// takeRequests reads the requests, and returns the valid ones. If the session is lost, it
// returns them too: no other call would.
func (s *session) takeRequests() (accepted []Request, lost error) {
	log := s.node.log
	requests, err := s.conn.Requests()
	if lost = onlySessionLoss(s.endTrust(err)); err != nil && lost == nil {
		log.Warn("reading requests failed", "error", err)
	}
	for _, r := range requests {
		if lost == nil {
			refused := s.endTrust(s.validateRequest(r))
			if lost = onlySessionLoss(refused); refused != nil && lost == nil {
				log.Warn("refusing a request for a role", "role", r.Role, "kind", r.Kind, "by", r.By, "target", r.Target, "error", refused)
				continue
			}
		}
		accepted = append(accepted, r)
	}
	return accepted, lost
}
