package leaderhttp

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Healthz answers 200 as long as the process serves, whatever its database does: no
// restart of the process repairs a database.
func (r *Router) Healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// Readyz answers 200 while the node takes part in elections, as the leader or as a
// standby, and otherwise 503 with the reason.
func (r *Router) Readyz(w http.ResponseWriter, _ *http.Request) {
	if reason := r.unready(); reason != "" {
		answer(w, http.StatusServiceUnavailable, readyRecord{Reason: reason})
		return
	}
	answer(w, http.StatusOK, readyRecord{Ready: true})
}

type readyRecord struct {
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
}

// unready returns why the node does not take part, or "".
func (r *Router) unready() string {
	node := r.election.Node()
	switch status := node.Description().Status; {
	case !node.Connected():
		return "the node has no session with its database"
	case status != tenure.StatusActive:
		return fmt.Sprintf("the node is %s", status)
	case r.election.State() == tenure.Stopped:
		return "the node does not campaign for " + r.proxy.role
	}
	return ""
}

// Leader answers 200 while this node leads the role, from its own clocks, and
// otherwise 503 with the leader.
func (r *Router) Leader(w http.ResponseWriter, _ *http.Request) {
	node := r.election.Node()
	record := leadingRecord{Role: r.proxy.role, Node: node.ID(), NodeName: node.Name()}
	if term := r.election.Term(); term != nil {
		record.Leading, record.Term = true, term.Number()
		answer(w, http.StatusOK, record)
		return
	}
	record.Leader = newLeaderRecord(r.proxy.setLeader(w))
	answer(w, http.StatusServiceUnavailable, record)
}

type leadingRecord struct {
	Role     string        `json:"role"`
	Leading  bool          `json:"leading"`
	Term     int64         `json:"term,omitempty"`
	Node     uuid.UUID     `json:"node"`
	NodeName string        `json:"node_name"`
	Leader   *leaderRecord `json:"leader,omitempty"` // of another node
}
