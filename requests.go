package tenure

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/endreason"
)

// RequestKind is the kind of a Request.
type RequestKind string

// The kinds of requests.
const (
	RequestStepDown RequestKind = "step_down"
	RequestHandOver RequestKind = "hand_over"
	RequestDrain    RequestKind = "drain"
	RequestUndrain  RequestKind = "undrain"
)

// Request is a request for the leader of a role or for a node.
type Request struct {
	Kind   RequestKind
	Role   string    // of a step-down or hand-over
	Term   int64     // of a step-down or hand-over: the term to end; 0 for the present one
	Node   uuid.UUID // of a drain or undrain
	Target uuid.UUID // of a hand-over and, optionally, of a drain: the next leader
	Force  bool      // of a drain: also if no other node is active then
	Offer  bool      // of a hand-over: only ask Target whether it campaigns for Role
	By     string    // the requester, for the record
	At     time.Time // by the database's clock; set by the Backend
}

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

// termEnd returns how the request ends its term.
func (r Request) termEnd() termEnd {
	if r.Kind == RequestHandOver {
		return termEnd{reason: endreason.HandedOver, cause: withDetail(ErrHandedOver, requesterCause(r)), target: r.Target, by: r.By}
	}
	return termEnd{reason: endreason.SteppedDown, cause: withDetail(ErrSteppedDown, requesterCause(r)), target: r.Target, by: r.By}
}

func requesterCause(r Request) error {
	if r.By == "" {
		return nil
	}
	return fmt.Errorf("requested by %s", r.By)
}
