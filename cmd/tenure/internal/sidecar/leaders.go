package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
)

type roleRecord = record.RoleLeader

// leadersRecord is who leads, by role.
type leadersRecord struct {
	Leaders []roleRecord `json:"leaders"`
}

// leaders tells who leads all roles that anybody leads.
func (h *Handler) leaders(w http.ResponseWriter, r *http.Request) {
	if found, ok := h.lookUp(w, r); ok {
		answerJSON(w, http.StatusOK, found.all)
	}
}

// leader tells who leads a role.
func (h *Handler) leader(w http.ResponseWriter, r *http.Request) {
	role := r.PathValue("role")
	if err := tenure.NamedRole(role).Validate(); err != nil {
		refuse(w, http.StatusBadRequest, codeInvalidRole, err.Error())
		return
	}
	found, ok := h.lookUp(w, r)
	if !ok {
		return
	}
	leader, led := found.byRole[role]
	if !led {
		refuse(w, http.StatusNotFound, codeNoLeader, fmt.Sprintf("nobody leads %q", role))
		return
	}
	answer(w, http.StatusOK, roleRecord{Role: role, Leader: record.NewLeader(&leader)})
}

func (h *Handler) lookUp(w http.ResponseWriter, r *http.Request) (*finding, bool) {
	m, ok := h.present(w)
	if !ok {
		return nil, false
	}
	found, err := m.leaders.find(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, codeDatabase,
			"the database did not say who leads; the log of the node says why")
		return nil, false
	}
	return found, true
}

// The bounds on what clients can ask of the database.
const (
	lookUpInterval = time.Second     // between two questions
	lookUpTimeout  = 5 * time.Second // for an answer
)

// directory asks the database who leads: at most once at a time and per
// lookUpInterval, however many clients want to know. It is safe for concurrent
// use.
type directory struct {
	life    context.Context
	group   *sync.WaitGroup
	backend tenure.Backend
	log     *slog.Logger

	mu   sync.Mutex
	last *finding
}

// finding is the answer to one question. Its fields may be read when done is
// closed.
type finding struct {
	asked  time.Time
	done   chan struct{}
	err    error
	byRole map[string]tenure.Leader
	all    []byte // a leadersRecord, encoded once
}

// newDirectory makes a directory whose lookups end with a context and are counted
// in a group.
func newDirectory(life context.Context, group *sync.WaitGroup, backend tenure.Backend, log *slog.Logger) *directory {
	return &directory{life: life, group: group, backend: backend, log: log}
}

// find returns who leads, as the database said within the last lookUpInterval or
// says now.
func (d *directory) find(ctx context.Context) (*finding, error) {
	found, err := d.recent()
	if err != nil {
		return nil, err
	}
	select {
	case <-found.done:
		return found, found.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// recent returns the last question, or begins the next.
func (d *directory) recent() (*finding, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.last; found != nil {
		select {
		case <-found.done:
			if time.Since(found.asked) < lookUpInterval {
				return found, nil
			}
		default:
			return found, nil
		}
	}
	if err := d.life.Err(); err != nil {
		return nil, err
	}
	d.last = &finding{asked: time.Now(), done: make(chan struct{})}
	found := d.last
	// On its own, so that a client that goes does not take the answer from others.
	d.group.Go(func() { d.ask(found) })
	return found, nil
}

func (d *directory) ask(found *finding) {
	defer close(found.done)
	ctx, cancel := context.WithTimeout(d.life, lookUpTimeout)
	defer cancel()
	leaders, err := d.backend.Leaders(ctx)
	if err != nil {
		found.err = err
		if d.life.Err() == nil {
			d.log.Warn("looking up the leaders for a client failed", "error", err)
		}
		return
	}
	found.byRole = make(map[string]tenure.Leader, len(leaders))
	all := leadersRecord{Leaders: []roleRecord{}}
	for i, leader := range leaders {
		found.byRole[leader.Role] = leader
		all.Leaders = append(all.Leaders, roleRecord{Role: leader.Role, Leader: record.NewLeader(&leaders[i])})
	}
	found.all, found.err = json.Marshal(all)
}
