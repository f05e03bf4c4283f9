package sidecar

import (
	"fmt"
	"net/http"
	"time"
)

// healthRecord reports a serving process.
type healthRecord struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// healthy answers as long as the process serves. The answer does not depend on the
// database: no restart of this process would end an outage.
func (h *Handler) healthy(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, healthRecord{"ok", h.config.Version})
}

// readyRecord says whether a node takes part.
type readyRecord struct {
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"` // why it does not
}

// ready serves whether the node campaigns in its elections.
func (h *Handler) ready(w http.ResponseWriter, _ *http.Request) {
	reason := notYet
	if m := h.member.Load(); m != nil {
		reason = m.unready()
	}
	if reason != "" {
		answer(w, http.StatusServiceUnavailable, readyRecord{Reason: reason})
		return
	}
	answer(w, http.StatusOK, readyRecord{Ready: true})
}

// unready says why the node does not take part, or nothing.
func (m *member) unready() string {
	node := m.node
	if !node.Connected() {
		return "the session with the database is lost; the node tries to open another one"
	}
	if m.joined != nil {
		if err := m.joined.Ready(); err != nil { // it waits for others, drains, or leaves
			return err.Error()
		}
	}
	// The trust of a healthy node never falls below what is left of it just before a
	// heartbeat. A node that has lost half of this has trouble to renew.
	timing := node.Timing()
	spare := timing.Lease - timing.Margin - timing.RefreshInterval
	for _, election := range node.Elections() {
		if term := election.Term(); term != nil {
			if left := term.Remaining(); left < spare/2 {
				return fmt.Sprintf("the node leads but cannot renew: its terms end in %v", left.Round(time.Millisecond))
			}
			return "" // all terms of a node are trusted for the same time
		}
	}
	return ""
}
