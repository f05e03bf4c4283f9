package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// nodesRecord is all nodes, the dead among them.
type nodesRecord struct {
	Nodes []record.Node `json:"nodes"`
}

// nodeSnapshot is the nodes of the cluster, as the database returned them.
type nodeSnapshot struct {
	roster  *roster.Roster
	cluster []byte // a record.Cluster, encoded once
	nodes   []byte // a nodesRecord
}

// readNodes reads the nodes of the cluster from the database.
func readNodes(ctx context.Context, source roster.Source, name string) (nodeSnapshot, error) {
	found, err := roster.ReadAll(ctx, source)
	if err != nil {
		return nodeSnapshot{}, err
	}
	all := found.Record(name)
	encoded, err := json.Marshal(all)
	if err != nil {
		return nodeSnapshot{}, err
	}
	nodes, err := json.Marshal(nodesRecord{all.Nodes})
	return nodeSnapshot{found, encoded, nodes}, err
}

// cluster serves the nodes, the leaders, and the number of nodes by status.
func (h *Handler) cluster(w http.ResponseWriter, r *http.Request) {
	if found, ok := h.count(w, r); ok {
		answerJSON(w, http.StatusOK, found.cluster)
	}
}

// allNodes serves the nodes.
func (h *Handler) allNodes(w http.ResponseWriter, r *http.Request) {
	if found, ok := h.count(w, r); ok {
		answerJSON(w, http.StatusOK, found.nodes)
	}
}

// oneNode serves one node.
func (h *Handler) oneNode(w http.ResponseWriter, r *http.Request) {
	found, ok := h.count(w, r)
	if !ok {
		return
	}
	if m, ok := findNode(w, found.roster, r.PathValue("node")); ok {
		answer(w, http.StatusOK, found.roster.Node(m))
	}
}

func (h *Handler) count(w http.ResponseWriter, r *http.Request) (nodeSnapshot, bool) {
	m, ok := h.present(w)
	if !ok {
		return nodeSnapshot{}, false
	}
	if m.nodes == nil {
		refuseWithoutRegistry(w)
		return nodeSnapshot{}, false
	}
	found, err := m.nodes.find(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, codeDatabase,
			"the nodes cannot be read from the database; see the log of the node")
		return nodeSnapshot{}, false
	}
	return found, true
}

func refuseWithoutRegistry(w http.ResponseWriter) {
	refuse(w, http.StatusNotImplemented, codeNoRegistry, "this database keeps leases and no registry of nodes")
}

// findNode finds a node by its id, its name, or the beginning of its id.
func findNode(w http.ResponseWriter, found *roster.Roster, text string) (tenure.Member, bool) {
	m, err := found.Find(text, roster.Alive)
	var ambiguous *roster.AmbiguousError
	switch {
	case err == nil:
		return m, true
	case errors.As(err, &ambiguous):
		refuse(w, http.StatusConflict, codeAmbiguous, err.Error())
	default:
		refuse(w, http.StatusNotFound, codeUnknownNode, err.Error())
	}
	return tenure.Member{}, false
}
