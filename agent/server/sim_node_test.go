package server

import (
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
)

// simNode is a node of a host. It follows the rules of the engine: it trusts its term
// until the earlier one of the agent's limit and its limit, sends nothing after that, and
// closes its connection when its work has returned.
type simNode struct {
	world   *simWorld
	name    string
	host    int
	process gate // shut while it is stopped

	// Guarded by world.mu.
	conn  *simConn
	trust wire.Moment // 0 before the first heartbeat
	term  int64       // that it leads
	lost  bool        // it knows that its session is lost
}

func (n *simNode) leadsLocked() bool { return n.term != 0 && n.trustsLocked() }

func (n *simNode) trustsLocked() bool { return !n.lost && simNow() < n.trust }

// run opens one session after another.
func (n *simNode) run() {
	id := uuid.New()
	for !n.world.isOver() {
		if n.world.chance(3) {
			id = uuid.New()
		}
		n.session(id)
		n.sleep(n.world.between(time.Millisecond, 200*time.Millisecond), nil)
	}
}

func (n *simNode) sleep(d time.Duration, unless <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-unless:
	case <-n.world.over:
	}
	n.process.pass(nil)
}

// session is one session with the agent that the host has now.
func (n *simNode) session(id uuid.UUID) {
	w := n.world
	agent := w.agentOf(n.host)
	atNode, atAgent := connect(&n.process, &agent.process)
	w.mu.Lock()
	n.conn, n.trust, n.term, n.lost = atNode, 0, 0, false
	w.mu.Unlock()
	agent.accept(atNode, atAgent)
	answers, gone := make(chan wire.Answer, 1), make(chan struct{})
	w.group.Go(func() { // exits when the connection ends
		defer close(gone)
		for {
			var answer wire.Answer
			err := wire.Read(atNode, &answer)
			if err != nil || answer.Event == wire.EventLost {
				n.lose()
				return
			}
			if answer.Event == "" {
				answers <- answer
			}
		}
	})
	call := func(call wire.Call, most time.Duration) (wire.Answer, bool) {
		call.Version = wire.Version
		n.process.pass(nil)
		if err := wire.Write(atNode, call); err != nil {
			return wire.Answer{}, false
		}
		select {
		case answer := <-answers:
			n.process.pass(nil)
			return answer, answer.Err == nil
		case <-gone:
		case <-w.over:
		case <-time.After(most):
		}
		n.process.pass(nil)
		return wire.Answer{}, false
	}
	_, ok := call(wire.Call{Op: wire.OpOpen, Open: &wire.Open{
		Node: tenure.NodeInfo{ID: id, Name: n.name}, Lease: w.lease, Refresh: w.refresh, Settle: w.timing.Settle,
	}}, 10*time.Second)
	for ok && !w.isOver() {
		if ok = n.beat(call); ok {
			ok = n.campaign(call)
		}
		n.sleep(w.between(w.refresh/2, w.refresh), gone)
	}
	n.lose()
	n.sleep(w.between(0, 300*time.Millisecond), nil) // the work returns
	_ = atNode.Close()
	<-gone
}

// beat sends a heartbeat and extends trust.
func (n *simNode) beat(call func(wire.Call, time.Duration) (wire.Answer, bool)) bool {
	w, sent := n.world, simNow()
	w.mu.Lock()
	begun, most := n.trust != 0, n.trust.Sub(sent)
	w.mu.Unlock()
	if !begun {
		most = w.lease
	}
	answer, ok := call(wire.Call{Op: wire.OpHeartbeat}, most)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ok || n.lost || begun && simNow() >= n.trust {
		n.lost = true
		return false
	}
	n.trust = min(sent.Add(w.lease-w.timing.Margin), answer.Until)
	return n.trustsLocked()
}

// campaign tries to acquire the role, or resigns sometimes.
func (n *simNode) campaign(call func(wire.Call, time.Duration) (wire.Answer, bool)) bool {
	w, role := n.world, wire.Role{Name: simRole}
	w.mu.Lock()
	term, left := n.term, n.trust.Sub(simNow())
	resigns := term != 0 && w.chanceLocked(20)
	if resigns {
		n.term = 0
	}
	w.mu.Unlock()
	switch {
	case resigns:
		_, ok := call(wire.Call{Op: wire.OpRelease, Releases: []wire.Release{{Role: role, Term: term, Reason: "resigned"}}}, left)
		return ok
	case term != 0:
		return true
	}
	answer, ok := call(wire.Call{Op: wire.OpAcquire, Acquire: []wire.Acquire{{Role: role}}}, left)
	if !ok || len(answer.Results) != 1 {
		return false
	}
	if got := answer.Results[0]; got.Outcome == tenure.OutcomeGranted {
		w.begin(n, got.Term)
	}
	return true
}

// lose ends the session as the node sees it.
func (n *simNode) lose() {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.lost = true
}

// kill ends the process: its kernel closes the connection. The next session is that of
// another process.
func (n *simNode) kill() {
	n.world.mu.Lock()
	n.lost = true
	conn := n.conn
	n.world.mu.Unlock()
	if conn != nil {
		conn.cut()
	}
	n.process.open()
}
