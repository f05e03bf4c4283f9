package sidecar

import (
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/feed"
)

// The bounds on guards.
const (
	maxGuards  = 256         // at a time
	eachGuards = 128         // of them from one address
	guardPulse = time.Second // between signs of life, to find a dead client with
	guardLast  = time.Second // for a client to take the last event

	// guardMargin is the part of Settle that no piece of work may use: if the server ends
	// the connection of a node, the node learns of it later than a standby.
	guardMargin = 200 * time.Millisecond
)

// The kinds of events in the response to a guard. The last one is kindEnd.
const (
	kindGuard    = "guard"    // the guard is held
	kindStopping = "stopping" // the term was asked to end
	kindEnded    = "ended"    // trust in the term has ended
)

// guardShape is the form of the body, in words.
const guardShape = `{"at_most_seconds": SECONDS}, also with "term": NUMBER`

// guardBody is the body of a request for a guard.
type guardBody struct {
	Term          int64   `json:"term"`            // 0 for the present one
	AtMostSeconds float64 `json:"at_most_seconds"` // from the sending of the request to the end of the piece
}

// guardRecord describes a held guard.
type guardRecord struct {
	Role             string    `json:"role"`
	Term             int64     `json:"term"`
	Node             uuid.UUID `json:"node"`
	NodeName         string    `json:"node_name"`
	AtMostSeconds    float64   `json:"at_most_seconds"`
	RemainingSeconds float64   `json:"remaining_seconds"` // of the term without another heartbeat
}

// guard keeps a role for a piece of work until the client closes the request, or for
// as long as the client has declared.
//
// A piece ends before the next term begins if it ends within that time, counted from
// before the request is sent:
//   - A clean end waits for the guard.
//   - If this process dies, its term ends uncleanly, and the next one waits for Settle.
//   - If it freezes or cannot reach the database, the piece ends within the trust window.
func (h *Handler) guard(w http.ResponseWriter, r *http.Request) {
	m, ok := h.present(w)
	if !ok {
		return
	}
	election, ok := find(w, m.node, r.PathValue("role"))
	if !ok {
		return
	}
	body, ok := readBody[guardBody](w, r, guardShape)
	if !ok {
		return
	}
	atMost, ok := pieceLength(w, body.AtMostSeconds, m.node.Timing())
	if !ok {
		return
	}
	release, ok := h.guards.Take(h.config.Proxies.Client(r))
	if !ok {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, codeManyGuards, "too many guards are held, in all or from this address; try again later")
		return
	}
	defer release()
	until := time.Now().Add(atMost)
	guard, err := election.Guard()
	if err != nil {
		refuse(w, http.StatusConflict, codeNotLeader, fmt.Sprintf("%s does not lead %q, or its term was asked to end; ask the leader", m.node.Name(), election.Role()))
		return
	}
	defer guard.Done()
	term := guard.Term()
	if body.Term != 0 && body.Term != term.Number() {
		refuse(w, http.StatusConflict, codeNotLeader, fmt.Sprintf("%s leads %q in term %d; term %d is over", m.node.Name(), election.Role(), term.Number(), body.Term))
		return
	}
	left := term.Remaining()
	if left < atMost {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusConflict, codeLate, fmt.Sprintf("without another heartbeat the term is valid for %v, which is shorter than the piece of work; try again later", left))
		return
	}
	h.keepGuard(w, r, guard, until, feed.Frame("", kindGuard, guardRecord{
		Role: election.Role().Name(), Term: term.Number(), Node: m.node.ID(), NodeName: m.node.Name(),
		AtMostSeconds: body.AtMostSeconds, RemainingSeconds: left.Seconds(),
	}))
}

// pieceLength returns how long a piece of work may take, or refuses it.
func pieceLength(w http.ResponseWriter, seconds float64, timing tenure.Timing) (time.Duration, bool) {
	if seconds <= 0 {
		refuse(w, http.StatusBadRequest, codeInvalidBody, "at_most_seconds must be more than 0: the body must be one JSON object, "+guardShape)
		return 0, false
	}
	if most := timing.Settle - guardMargin; seconds > most.Seconds() {
		refuse(w, http.StatusUnprocessableEntity, codeTooLong, fmt.Sprintf(
			"a piece of work of %gs needs --settle to be at least %v longer; it is %v: set it on every node of the role", seconds, guardMargin, timing.Settle))
		return 0, false
	}
	if most := timing.Lease - timing.Margin - timing.RefreshInterval; seconds > most.Seconds() {
		refuse(w, http.StatusUnprocessableEntity, codeTooLong, fmt.Sprintf(
			"a piece of work of %gs is longer than %v, which is --lease less --margin and --refresh: set a longer --lease on every node of the role", seconds, most))
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// keepGuard sends first, and returns when the client has closed the request or the guard
// has lasted until its end. A client that does not read delays neither. If the server
// closes the connection in favor of another one, the client may still work: the guard
// lasts until its end.
func (h *Handler) keepGuard(w http.ResponseWriter, r *http.Request, guard *tenure.Guard, until time.Time, first []byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for reverse proxies
	w.WriteHeader(http.StatusOK)
	out := guardWriter{w, http.NewResponseController(w)}
	// The bound on responses is not meant for a guard. Where it cannot be moved, the guard
	// ends early.
	_ = out.control.SetWriteDeadline(until.Add(guardLast))
	done := time.AfterFunc(time.Until(until), guard.Done) // also while a write waits
	defer done.Stop()
	switch {
	case out.write(first) && out.follow(r, guard, until):
		out.write(feed.Frame("", kindEnd, lastRecord{"the guard has lasted for at_most_seconds"}))
	case evicted(r):
		select {
		case <-time.After(time.Until(until)):
		case <-h.ctx.Done():
		}
	}
}

// guardWriter writes to the client of a guard.
type guardWriter struct {
	out     http.ResponseWriter
	control *http.ResponseController
}

// write writes a frame and reports whether the client still takes it.
func (w guardWriter) write(frame []byte) bool {
	_, err := w.out.Write(frame)
	return err == nil && w.control.Flush() == nil
}

// follow writes the changes of a guard's term, and reports whether the end came before
// the client had left.
func (w guardWriter) follow(r *http.Request, guard *tenure.Guard, until time.Time) bool {
	end := time.NewTimer(time.Until(until))
	defer end.Stop()
	pulse := time.NewTicker(guardPulse)
	defer pulse.Stop()
	stopping, ended := guard.Stopping(), guard.Context().Done()
	for {
		frame := []byte(": alive\n\n")
		select {
		case <-r.Context().Done():
			return false
		case <-end.C:
			return true
		case <-stopping:
			stopping = nil
			frame = feed.Frame("", kindStopping, lastRecord{"the term was asked to end and waits for this guard: begin no more work"})
		case <-ended:
			stopping, ended = nil, nil
			frame = feed.Frame("", kindEnded, lastRecord{"the term has ended: stop"})
		case <-pulse.C:
		}
		if !time.Now().Before(until) {
			return true
		}
		if !w.write(frame) {
			return false
		}
	}
}
