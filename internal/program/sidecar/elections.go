package sidecar

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/rolespec"
)

// electionRecord is a node's candidacy for one role.
type electionRecord struct {
	Role             string      `json:"role"`
	State            string      `json:"state"`
	Leading          bool        `json:"leading"`  // decides, where the state follows a moment later
	Term             *int64      `json:"term"`     // null if this node does not lead
	BeganAt          record.Time `json:"began_at"` // the term's begin, by the database's clock
	RemainingSeconds *float64    `json:"remaining_seconds"`
	Node             uuid.UUID   `json:"node"`
	NodeName         string      `json:"node_name"`
}

func newElectionRecord(election *tenure.Election) electionRecord {
	node := election.Node()
	r := electionRecord{
		Role: election.Role().Name(), State: election.State().String(), Node: node.ID(), NodeName: node.Name(),
	}
	if term := election.Term(); term != nil {
		number, remaining := term.Number(), term.Remaining().Seconds()
		r.Leading, r.Term, r.BeganAt, r.RemainingSeconds = true, &number, record.Time(term.AcquiredAt()), &remaining
	}
	return r
}

// electionsRecord is a node with all its elections, by role.
type electionsRecord struct {
	Node      uuid.UUID        `json:"node"`
	NodeName  string           `json:"node_name"`
	Connected bool             `json:"connected"`
	Elections []electionRecord `json:"elections"`
}

// elections serves the node's elections.
func (h *Handler) elections(w http.ResponseWriter, _ *http.Request) {
	m, ok := h.present(w)
	if !ok {
		return
	}
	r := electionsRecord{
		Node: m.node.ID(), NodeName: m.node.Name(), Connected: m.node.Connected(), Elections: []electionRecord{},
	}
	for _, election := range sorted(m.node.Elections()) {
		r.Elections = append(r.Elections, newElectionRecord(election))
	}
	answer(w, http.StatusOK, r)
}

func sorted(elections []*tenure.Election) []*tenure.Election {
	slices.SortFunc(elections, func(a, b *tenure.Election) int {
		return strings.Compare(a.Role().Name(), b.Role().Name())
	})
	return elections
}

// leading serves whether the node leads, also by the status code, for load balancers.
func (h *Handler) leading(w http.ResponseWriter, r *http.Request) {
	m, ok := h.present(w)
	if !ok {
		return
	}
	election, ok := choose(w, r, m.node)
	if !ok {
		return
	}
	status, answered := http.StatusServiceUnavailable, newElectionRecord(election)
	if answered.Leading {
		status = http.StatusOK
	}
	answer(w, status, answered)
}

// choose finds the election of a query. If the node has only one, the query need not name
// it.
func choose(w http.ResponseWriter, r *http.Request, node *tenure.Node) (*tenure.Election, bool) {
	query := r.URL.Query()
	if query.Has("role") {
		if len(query["role"]) > 1 {
			refuse(w, http.StatusBadRequest, codeRoleNeeded, "name one role")
			return nil, false
		}
		return find(w, node, query.Get("role"))
	}
	elections := sorted(node.Elections())
	switch len(elections) {
	case 0:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, codeStarting, "the node does not campaign for a role yet")
		return nil, false
	case 1:
		return elections[0], true
	default:
		refuse(w, http.StatusBadRequest, codeRoleNeeded,
			"the node campaigns for several roles; name one with ?role=: "+listed(elections))
		return nil, false
	}
}

// find returns the node's election for a role, by its name only.
func find(w http.ResponseWriter, node *tenure.Node, role string) (*tenure.Election, bool) {
	wanted, err := rolespec.Parse(role)
	if err != nil {
		refuse(w, http.StatusBadRequest, codeInvalidRole, err.Error())
		return nil, false
	}
	for _, election := range node.Elections() {
		if election.Role().Name() == wanted.Name() {
			return election, true
		}
	}
	refuse(w, http.StatusNotFound, codeUnknownRole, fmt.Sprintf("the node does not campaign for the role %q", role))
	return nil, false
}

// listed names the roles of elections, the first ones of many.
func listed(elections []*tenure.Election) string {
	const most = 20
	var names []string
	for i, election := range elections {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(elections)-most))
			break
		}
		names = append(names, fmt.Sprintf("%q", election.Role().Name()))
	}
	return strings.Join(names, ", ")
}
