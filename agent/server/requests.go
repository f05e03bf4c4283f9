package server

import (
	"errors"
	"slices"

	"github.com/exactly-one/tenure"
)

// readRequests passes requests on to the leaders of the roles.
func (h *host) readRequests() error {
	h.mu.Lock()
	h.requestsPending = false
	h.mu.Unlock()
	requests, err := h.inner.Requests()
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	if err != nil { // what was returned with it counts as taken
		h.cfg.Logger.Warn("reading requests failed", "error", err)
	}
	drain := false
	h.mu.Lock()
	for _, r := range requests {
		drain = drain || r.Role == ""
		h.deliverLocked(r)
	}
	h.mu.Unlock()
	registry, ok := h.inner.(tenure.RegistrySession)
	if !drain || !ok {
		return nil
	}
	h.cfg.Logger.Warn("an agent cannot be drained: stop it instead, and its nodes release their roles")
	err = registry.WriteDescription(tenure.Description{Status: tenure.StatusActive})
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	return nil
}

// maxRequests limits the waiting requests for one node.
const maxRequests = 100

// deliverLocked passes a request on to the leader of its role.
func (h *host) deliverLocked(r tenure.Request) bool {
	holding := h.held[r.Role]
	if holding == nil || holding.term == 0 {
		return false
	}
	c := holding.client
	if len(c.requests) >= maxRequests {
		c.requests = slices.Delete(c.requests, 0, 1)
	}
	c.requests = append(c.requests, r)
	c.wakeLocked()
	return true
}
