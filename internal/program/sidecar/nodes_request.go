package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// drainBody is the body of a request to drain.
type drainBody struct {
	To    string `json:"to"`    // the node to lead next, by its id or name; empty for any
	Force bool   `json:"force"` // also if no other node is active
}

const drainShape = `{} or {"to": "NODE", "force": true}`

// undrainBody is the body of a request to come back: nothing.
type undrainBody struct{}

// drain asks a node of the cluster to drain, and does not wait for it.
func (h *Handler) drain(w http.ResponseWriter, r *http.Request) {
	if body, ok := readBody[drainBody](w, r, drainShape); ok {
		h.requestNode(w, r, tenure.Request{Kind: tenure.RequestDrain, Force: body.Force}, body.To)
	}
}

// undrain asks a node of the cluster to come back into service.
func (h *Handler) undrain(w http.ResponseWriter, r *http.Request) {
	if _, ok := readBody[undrainBody](w, r, "{}"); ok {
		h.requestNode(w, r, tenure.Request{Kind: tenure.RequestUndrain}, "")
	}
}

// requestNode sends a request to a node of the cluster, and names the next leader, if
// any.
func (h *Handler) requestNode(w http.ResponseWriter, r *http.Request, request tenure.Request, to string) {
	m, ok := h.present(w)
	if !ok {
		return
	}
	source, ok := m.node.Backend().(roster.Source)
	if !ok {
		refuseWithoutRegistry(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookUpTimeout)
	defer cancel()
	found, err := roster.Read(ctx, source)
	if err != nil {
		h.refuseRequest(w, err)
		return
	}
	asked, ok := findAlive(w, found, r.PathValue("node"))
	if !ok {
		return
	}
	if to != "" {
		successor, ok := findAlive(w, found, to)
		if !ok {
			return
		}
		request.Target = successor.ID
	}
	request.Node, request.By = asked.ID, whoAsks(r)
	h.config.Logger.Info("a client requested a change of a node's status over HTTP",
		"kind", request.Kind, "node", asked.ID, "to", to, "force", request.Force, "from", r.RemoteAddr)
	if err := m.node.Backend().Request(ctx, request); err != nil {
		h.refuseRequest(w, err)
		return
	}
	answer(w, http.StatusAccepted, found.Node(asked))
}

// findAlive is findNode for a living node.
func findAlive(w http.ResponseWriter, found *roster.Roster, text string) (tenure.Member, bool) {
	m, ok := findNode(w, found, text)
	if ok && !roster.Alive(m) {
		refuse(w, http.StatusConflict, codeDeadNode, fmt.Sprintf("%s (%s) is dead", m.Name, m.ID))
		return m, false
	}
	return m, ok
}

// refuseRequest answers why a request to a node was not recorded.
func (h *Handler) refuseRequest(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, tenure.ErrLastNode):
		refuse(w, http.StatusConflict, codeLastNode, `it is the only active node: start another one first, or send {"force": true}`)
	case errors.Is(err, tenure.ErrUnknownNode):
		refuse(w, http.StatusConflict, codeDeadNode, "the node has died or left in the meantime")
	default:
		h.config.Logger.Warn("a request of a client to a node failed", "error", err)
		refuse(w, http.StatusServiceUnavailable, codeDatabase, "the database did not accept the request; see the log of the node")
	}
}
