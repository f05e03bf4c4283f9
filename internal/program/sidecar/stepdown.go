package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// stepDownTimeout bounds waiting for the work in flight to end.
const stepDownTimeout = 30 * time.Second

// stepDownShape is the allowed form of the body, in words.
const stepDownShape = `{}, or {"to": "NODE", "term": NUMBER} or a part of it`

// stepDownBody is the body of the request.
type stepDownBody struct {
	To   string `json:"to"`   // the node to lead next, by its id or name; empty for any
	Term int64  `json:"term"` // the term to end; 0 for the present one
}

// stepDownRecord is the result.
type stepDownRecord struct {
	Role     string     `json:"role"`
	Term     int64      `json:"term"` // which ends
	Node     uuid.UUID  `json:"node"` // which led
	NodeName string     `json:"node_name"`
	To       *uuid.UUID `json:"to"`
	Released bool       `json:"released"` // false: the work still runs, the role is free when it returns
}

// stepDown gives up a role led by this node and answers when it is free.
func (h *Handler) stepDown(w http.ResponseWriter, r *http.Request) {
	m, ok := h.present(w)
	if !ok {
		return
	}
	election, ok := find(w, m.node, r.PathValue("role"))
	if !ok {
		return
	}
	body, ok := readBody[stepDownBody](w, r, stepDownShape)
	if !ok {
		return
	}
	target, ok := h.target(w, r, m.node, body.To)
	if !ok {
		return
	}
	term := election.Term()
	if term == nil {
		refuse(w, http.StatusConflict, codeNotLeader, fmt.Sprintf("%s does not lead %q; ask the leader", m.node.Name(), election.Role()))
		return
	}
	if body.Term != 0 && body.Term != term.Number() {
		refuse(w, http.StatusConflict, codeNotLeader, fmt.Sprintf("%s leads %q in term %d; term %d is over", m.node.Name(), election.Role(), term.Number(), body.Term))
		return
	}
	h.config.Logger.Info("a client requested over HTTP to step down",
		"role", election.Role().Name(), "term", term.Number(), "to", body.To, "from", r.RemoteAddr)
	// The bounds on a request are shorter than work may take to end. Where they
	// cannot be moved the answer is cut; the role is given up nevertheless.
	extend(w, stepDownTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), stepDownTimeout)
	defer cancel()
	request := tenure.Request{Kind: tenure.RequestStepDown, Term: term.Number(), By: whoAsks(r)}
	if target != nil {
		request.Kind, request.Target = tenure.RequestHandOver, *target
		offer := tenure.Request{Kind: tenure.RequestHandOver, Offer: true, Role: election.Role().Name(), Target: *target, By: request.By}
		if err := m.node.Backend().Request(ctx, offer); errors.Is(err, tenure.ErrNotActive) {
			refuse(w, http.StatusConflict, codeNotCandidate, fmt.Sprintf("%s does not campaign for %q; %s still leads", body.To, election.Role(), m.node.Name()))
			return
		}
	}
	err := election.HandleRequest(ctx, request)
	done := stepDownRecord{
		Role: election.Role().Name(), Term: term.Number(), Node: m.node.ID(), NodeName: m.node.Name(), To: target, Released: true,
	}
	switch {
	case err == nil:
		answer(w, http.StatusOK, done)
	case errors.Is(err, tenure.ErrNotLeader):
		refuse(w, http.StatusConflict, codeNotLeader, fmt.Sprintf("%s no longer leads %q in term %d", m.node.Name(), election.Role(), term.Number()))
	case errors.Is(err, tenure.ErrShutdown):
		done.Released = false
		answer(w, http.StatusAccepted, done)
	default:
		h.config.Logger.Warn("stepping down failed", "role", election.Role().Name(), "error", err)
		refuse(w, http.StatusServiceUnavailable, codeSessionLost,
			"the session was lost during the step-down: the term has ended, and the role is vacant within one lease")
	}
}

// whoAsks says who a request comes from, for the record. Who holds the token is
// not known, but from where it was brought.
func whoAsks(r *http.Request) string { return "HTTP from " + r.RemoteAddr }

// nodeLister is a backend that knows the living nodes.
type nodeLister interface {
	Nodes(ctx context.Context) ([]tenure.NodeInfo, error)
}

// target finds the node to lead next among the living; nil if any may.
func (h *Handler) target(w http.ResponseWriter, r *http.Request, node *tenure.Node, to string) (*uuid.UUID, bool) {
	if to == "" {
		return nil, true
	}
	lister, ok := node.Backend().(nodeLister)
	if !ok {
		refuse(w, http.StatusBadRequest, codeUnknownNode, "this database does not know the nodes: leave \"to\" out")
		return nil, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookUpTimeout)
	defer cancel()
	nodes, err := lister.Nodes(ctx)
	if err != nil {
		h.config.Logger.Warn("looking up the nodes for a client failed", "error", err)
		refuse(w, http.StatusServiceUnavailable, codeDatabase, "the live nodes cannot be read from the database; see the log of the node")
		return nil, false
	}
	var found []uuid.UUID
	for _, candidate := range nodes {
		if candidate.Name == to || candidate.ID.String() == strings.ToLower(to) {
			found = append(found, candidate.ID)
		}
	}
	switch {
	case len(found) == 0:
		refuse(w, http.StatusNotFound, codeUnknownNode, fmt.Sprintf("no living node has the id or the name %q", to))
	case len(found) > 1:
		refuse(w, http.StatusConflict, codeAmbiguous, fmt.Sprintf("%d nodes are called %q: name one by its id", len(found), to))
	case found[0] == node.ID():
		refuse(w, http.StatusConflict, codeUnknownNode, "that is this node itself")
	default:
		return &found[0], true
	}
	return nil, false
}
