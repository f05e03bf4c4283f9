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
	"github.com/exactly-one/tenure/internal/httpguard"
)

// stepDownTimeout bounds waiting for the work in flight to end.
const stepDownTimeout = 30 * time.Second

// stepDownShape is what the body may be, in words.
const stepDownShape = `{} or {"to": "NODE"}`

// stepDownBody is what the request may say.
type stepDownBody struct {
	To string `json:"to"` // the node to lead next, by its id or name; empty for any
}

// stepDownRecord is what came of it.
type stepDownRecord struct {
	Role     string     `json:"role"`
	Term     int64      `json:"term"` // which ends
	Node     uuid.UUID  `json:"node"` // which led
	NodeName string     `json:"node_name"`
	To       *uuid.UUID `json:"to"`
	Released bool       `json:"released"` // false: the work still runs, the role is free when it returns
}

// protected lets only those write who know the token, and no page of another
// origin, whatever it knows.
func (h *Handler) protected(next http.HandlerFunc) http.HandlerFunc {
	origins := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := origins.Check(r); err != nil {
			refuse(w, http.StatusForbidden, codeCrossOrigin, "requests of other origins are refused")
			return
		}
		if h.config.Token == nil {
			refuse(w, http.StatusForbidden, codeWritesOff, "writing is off: start the node with --token-file to allow it with that token")
			return
		}
		address, attempts := h.config.Proxies.Client(r), httpguard.AttemptsOf(r.Context(), h.attempts)
		given, brought := bearer(r.Header.Get("Authorization"))
		known, allowed, err := false, attempts.Allowed(address), error(nil)
		if brought {
			known, allowed, err = attempts.Check(r.Context(), address, func() (bool, error) { return h.config.Token.matches(given) })
		}
		switch {
		case !allowed:
			w.Header().Set("Retry-After", "60")
			refuse(w, http.StatusTooManyRequests, codeGuessing, "too many wrong tokens; try again in a minute")
		case err != nil:
			refuse(w, http.StatusServiceUnavailable, codeToken, "the node cannot use its token file; see its log")
		case !brought:
			w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
			refuse(w, http.StatusUnauthorized, codeUnauthorized, "this needs the header Authorization: Bearer TOKEN")
		case !known:
			h.config.Logger.Warn("a request with a wrong token was refused", "path", r.URL.Path, "from", r.RemoteAddr)
			w.Header().Set("WWW-Authenticate", `Bearer realm="tenure", error="invalid_token"`)
			refuse(w, http.StatusUnauthorized, codeUnauthorized, "the token is not the node's")
		default:
			next(w, r)
		}
	}
}

// stepDown gives up a role that this node leads and answers when it is free.
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
	h.config.Logger.Info("a client requested over HTTP to step down",
		"role", election.Role().Name(), "term", term.Number(), "to", body.To, "from", r.RemoteAddr)
	// The bounds on a request are shorter than work may take to end. Where they
	// cannot be moved the answer is cut; the role is given up nevertheless.
	extend(w, stepDownTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), stepDownTimeout)
	defer cancel()
	request := tenure.Request{Kind: tenure.RequestStepDown, By: whoAsks(r)}
	if target != nil {
		request.Kind, request.Target = tenure.RequestHandOver, *target
	}
	err := election.HandleRequest(ctx, request)
	done := stepDownRecord{
		Role: election.Role().Name(), Term: term.Number(), Node: m.node.ID(), NodeName: m.node.Name(), To: target, Released: true,
	}
	switch {
	case err == nil:
		answer(w, http.StatusOK, done)
	case errors.Is(err, tenure.ErrNotLeader):
		refuse(w, http.StatusConflict, codeNotLeader, fmt.Sprintf("%s no longer leads %q", m.node.Name(), election.Role()))
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
