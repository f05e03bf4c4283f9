package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/rolespec"
)

type roleRecord = record.RoleLeader

// leadersRecord is who leads, by role.
type leadersRecord struct {
	Leaders []roleRecord `json:"leaders"`
}

// leaders serves the leaders of all roles.
func (h *Handler) leaders(w http.ResponseWriter, r *http.Request) {
	if found, ok := h.lookUp(w, r); ok {
		answerJSON(w, http.StatusOK, found.all)
	}
}

// leader serves the leader of a role.
func (h *Handler) leader(w http.ResponseWriter, r *http.Request) {
	wanted, err := rolespec.Parse(r.PathValue("role"))
	if err != nil {
		refuse(w, http.StatusBadRequest, codeInvalidRole, err.Error())
		return
	}
	role := wanted.Name()
	found, ok := h.lookUp(w, r)
	if !ok {
		return
	}
	leader, led := found.byRole[role]
	if !led {
		refuse(w, http.StatusNotFound, codeNoLeader, fmt.Sprintf("no node leads %q", role))
		return
	}
	answer(w, http.StatusOK, roleRecord{Role: role, Leader: record.NewLeader(&leader)})
}

func (h *Handler) lookUp(w http.ResponseWriter, r *http.Request) (leadership, bool) {
	m, ok := h.present(w)
	if !ok {
		return leadership{}, false
	}
	found, err := m.leaders.find(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, codeDatabase,
			"the leaders cannot be read from the database; see the log of the node")
		return leadership{}, false
	}
	return found, true
}

// leadership is who leads, as the database said.
type leadership struct {
	byRole map[string]tenure.Leader
	all    []byte // a leadersRecord, encoded once
}

// askLeaders asks the database who leads.
func askLeaders(ctx context.Context, backend tenure.Backend) (leadership, error) {
	leaders, err := backend.Leaders(ctx)
	if err != nil {
		return leadership{}, err
	}
	found := leadership{byRole: make(map[string]tenure.Leader, len(leaders))}
	all := leadersRecord{Leaders: []roleRecord{}}
	for i, leader := range leaders {
		found.byRole[leader.Role] = leader
		all.Leaders = append(all.Leaders, roleRecord{Role: leader.Role, Leader: record.NewLeader(&leaders[i])})
	}
	found.all, err = json.Marshal(all)
	return found, err
}
