// Package simcalls describes the calls that the simulated database of the laboratory
// receives, with its answers. The simulator records them, and a test of package postgres
// repeats them on a real server and compares the answers.
package simcalls

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Kind is a kind of call.
type Kind string

// The kinds of calls.
const (
	Schedules  Kind = "schedule"  // a schedule begins, on empty tables
	Opens      Kind = "open"      // a session joins
	Locks      Kind = "lock"      // a session tries to lock roles
	Closes     Kind = "close"     // it closes the terms of their previous holders
	Begins     Kind = "begin"     // it begins terms
	Ends       Kind = "end"       // it records the ends of its terms
	Frees      Kind = "free"      // the server frees the lock of a role, or of a node
	Beats      Kind = "heartbeat" // a session sends a heartbeat
	Corrects   Kind = "correct"   // heartbeats of a clock that was ahead are corrected
	Deaths     Kind = "death"     // a node is marked dead
	Leaves     Kind = "leave"     // the row of a node is removed
	Watches    Kind = "watch"     // a watch checks its predecessors
	Fences     Kind = "fence"     // a transaction passes the fence, or does not
	Unfences   Kind = "unfence"   // that transaction ends
	Crashes    Kind = "crash"     // the server loses all locks
	Tables     Kind = "tables"    // a crash or a promotion has changed the tables
	Incomplete Kind = "stop"      // what follows cannot be repeated
)

// Call is one call. Fields that say nothing about its kind are empty.
type Call struct {
	Kind    Kind          `json:"call"`
	Seed    uint64        `json:"seed,omitempty"`
	Clock   time.Duration `json:"clock,omitempty"` // what the server's clock shows
	Life    Life          `json:"life,omitzero"`   // of the server
	Session int64         `json:"session,omitempty"`
	Roles   []Role        `json:"roles,omitempty"`
	Nodes   []Node        `json:"nodes,omitempty"` // of Opens and Tables

	Margin   time.Duration `json:"margin,omitempty"`
	Settling bool          `json:"settling,omitempty"` // the session waits after unclean ends
	Previous int64         `json:"previous,omitempty"` // session of the same process

	Stale   int64   `json:"stale,omitempty"`   // earlier session of the node that watches
	Blind   []int64 `json:"blind,omitempty"`   // sessions whose watches are down
	Event   string  `json:"event,omitempty"`   // what the watch sees; empty for nothing
	Died    int64   `json:"died,omitempty"`    // whose event it is
	Asked   []int64 `json:"asked,omitempty"`   // sessions
	AnyEnds bool    `json:"ended,omitempty"`   // one of Asked has ended
	Rowless bool    `json:"rowless,omitempty"` // the session has no row for its heartbeat

	Tx     int64 `json:"tx,omitempty"`
	Passes bool  `json:"passes,omitempty"` // the fence
}

// Life identifies the server and since when it has kept its locks.
type Life struct {
	Timeline int  `json:"timeline"`
	Boot     int  `json:"boot"`
	New      bool `json:"new,omitempty"` // no locks were lost since the tables were made
}

// Node is a row of the registry.
type Node struct {
	ID        uuid.UUID     `json:"id"`
	Session   int64         `json:"session"`
	Lease     time.Duration `json:"lease"`
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	Dead      bool          `json:"dead,omitempty"`
	DiedAt    time.Duration `json:"died_at,omitempty"`
	Trusted   time.Duration `json:"trusted,omitempty"` // until when
	Life      Life          `json:"life"`
}

// Role is a role in a call, with the answer of the database about it.
type Role struct {
	Name      string           `json:"role"`
	Term      int64            `json:"term,omitempty"`
	YieldTerm int64            `json:"yield_term,omitempty"`
	YieldFor  time.Duration    `json:"yield_for,omitempty"`
	Reason    tenure.EndReason `json:"reason,omitempty"`
	Target    uuid.UUID        `json:"target,omitzero"`
	Reserve   time.Duration    `json:"reserve,omitempty"`

	Outcome  tenure.Outcome `json:"outcome,omitempty"`
	RetryIn  time.Duration  `json:"retry_in,omitempty"`
	Led      bool           `json:"led,omitempty"`
	Fenced   bool           `json:"fenced,omitempty"`
	Previous int64          `json:"previous,omitempty"`
	Vacancy  time.Duration  `json:"vacancy,omitempty"`
	Begun    time.Duration  `json:"begun,omitempty"` // at
	Over     bool           `json:"over,omitempty"`  // its term has ended

	// The row, in Tables, and before Closes.
	Node          uuid.UUID     `json:"node,omitzero"`
	Session       int64         `json:"session,omitempty"`
	Lease         time.Duration `json:"lease,omitempty"`
	EndedAt       time.Duration `json:"ended_at,omitempty"`
	Unobserved    bool          `json:"unobserved,omitempty"` // the end of its term
	Life          Life          `json:"life,omitzero"`
	ReservedUntil time.Duration `json:"reserved_until,omitempty"`
}

// Write writes calls, compressed.
func Write(to io.Writer, calls []Call) error {
	w := gzip.NewWriter(to)
	encoder := json.NewEncoder(w)
	for _, c := range calls {
		if err := encoder.Encode(c); err != nil {
			return err
		}
	}
	return w.Close()
}

// Read hands the calls to each, in their order.
func Read(from io.Reader, each func(Call) error) error {
	r, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(r)
	for {
		var c Call
		switch err := decoder.Decode(&c); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(c); err != nil {
			return err
		}
	}
}
