package tenure

import (
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/steps"
)

// step emits a step of the models in lab/model, if the node has a recorder.
func (n *Node) step(s steps.Step) {
	if n.steps == nil {
		return
	}
	s.Node = n.id.String()
	if s.Clock == (clocks.Instant{}) {
		s.Clock = n.clock.Now()
	}
	n.steps.Record(s)
}

// step emits a step of a session and, for some kinds, of a term of a role.
func (s *session) step(kind steps.Kind, role string, term int64) {
	if s.node.steps != nil {
		s.node.step(steps.Step{Kind: kind, Session: s.conn.Incarnation(), Role: role, Term: term})
	}
}

// sends emits a step that sends a statement for a role, unless the backend will refuse to.
func (s *session) sends(kind steps.Kind, role string, term int64) {
	if s.node.steps != nil && s.trust.maySend() {
		s.step(kind, role, term)
	}
}

// sendsHeartbeat is sends for a heartbeat.
func (s *session) sendsHeartbeat(sent clocks.Instant) {
	if s.node.steps != nil && s.trust.maySend() {
		s.node.step(steps.Step{Kind: steps.SendsHeartbeat, Session: s.conn.Incarnation(), Clock: sent})
	}
}

// getsAnswer emits that the answer of a heartbeat has moved the deadline.
func (s *session) getsAnswer() {
	if s.node.steps != nil {
		s.node.step(steps.Step{Kind: steps.GetsAnswer, Session: s.conn.Incarnation(), Until: s.trust.deadline()})
	}
}

// forcesClose emits that the connection is closed although work may run.
func (s *session) forcesClose() {
	if s.node.steps != nil {
		s.node.step(steps.Step{Kind: steps.Closes, Session: s.conn.Incarnation(), Forced: true})
	}
}
