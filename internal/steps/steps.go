// Package steps names the steps of the protocol as the models in lab/model do, and hands
// them to a recorder. The engine emits its steps when the context of [tenure.Open] has a
// recorder, as it does in tests only. Package lab/model/trace checks them.
package steps

import (
	"context"
	"time"

	"github.com/exactly-one/tenure/clocks"
)

// Kind is a kind of step.
type Kind string

// The steps of a node.
const (
	Opens          Kind = "opens a session"
	SendsHeartbeat Kind = "sends a heartbeat"
	GetsAnswer     Kind = "gets the answer of a heartbeat"
	Tries          Kind = "tries the role"
	Leads          Kind = "leads"
	EndsTerm       Kind = "ends its term"
	WorkReturns    Kind = "the work returns"
	Releases       Kind = "releases the role"
	GivesUp        Kind = "gives up its session"
	Closes         Kind = "closes its connection"
	Dies           Kind = "dies" // the process: all its steps to the end of work together
)

// The steps of an agent. Session is its own, or that of a node.
const (
	AgentGetsAnswer Kind = "the agent gets the answer"
	AgentReleases   Kind = "the agent releases the roles of a node" // forced: a silent one
	AgentCloses     Kind = "the agent closes its connection"        // forced: it ends
)

// The steps of a server.
const (
	Joins      Kind = "the server opens a session"
	Performs   Kind = "the server performs a statement"
	Beats      Kind = "the server commits a heartbeat"
	TakesLock  Kind = "takes the lock"
	Begins     Kind = "begins a term"
	Unlocks    Kind = "the server frees the lock"
	IdleEnds   Kind = "the idle timer ends the session"
	Reaps      Kind = "the reaper ends the session"
	Ends       Kind = "the server ends the session" // for another reason
	Kills      Kind = "an administrator ends the session"
	Leaves     Kind = "the server removes the node"
	Forgets    Kind = "an operator forgets the node"
	Crashes    Kind = "the server crashes"
	Stops      Kind = "the server is stopped"
	Starts     Kind = "the server starts"
	Loses      Kind = "the server loses terms" // with the tail of its log
	Promotes   Kind = "the standby is promoted"
	Recreates  Kind = "the tables are made anew"
	ClockSteps Kind = "the server's clock steps"
	Fences     Kind = "fences its transaction"
	Commits    Kind = "commits"
	RollsBack  Kind = "rolls back"
	Sees       Kind = "an observer sees the locks"
)

// Step is one step. Fields that say nothing about its kind are empty.
type Step struct {
	Kind    Kind          `json:"step"`
	At      time.Duration `json:"at"` // the same for all nodes and servers; recorders fill it in
	Node    string        `json:"node,omitempty"`
	Session int64         `json:"session,omitempty"`
	Role    string        `json:"role,omitempty"`
	Term    int64         `json:"term,omitempty"`
	Trust   time.Duration `json:"trust,omitempty"` // after GetsAnswer and AgentGetsAnswer: what is left
	Tx      int64         `json:"tx,omitempty"`

	// Of Opens and Joins, and the last two of Joins only.
	Lease        time.Duration `json:"lease,omitempty"`
	Margin       time.Duration `json:"margin,omitempty"`
	FailoverWait time.Duration `json:"failover_wait,omitempty"`
	Synchronous  bool          `json:"synchronous,omitempty"` // SynchronousFailover

	Rows   []Row            `json:"rows,omitempty"`   // of nodes, after Promotes
	Terms  map[string]int64 `json:"terms,omitempty"`  // by role, after Promotes and Loses: the last one that is left
	Locks  map[string]int64 `json:"locks,omitempty"`  // by role, of Sees: the session that has the lock
	Ended  map[string]bool  `json:"ended,omitempty"`  // by role: its leader has recorded its end
	By     time.Duration    `json:"by,omitempty"`     // of ClockSteps; of Sees: how long the look took
	Excuse time.Duration    `json:"excuse,omitempty"` // after ClockSteps: how long the server's times are false

	// Forced is set if the step ignores work that runs.
	Forced bool `json:"forced,omitempty"`

	// Clock is what the node's clocks showed, and Until its new deadline. Recorders make
	// At and Trust of them.
	Clock clocks.Instant `json:"-"`
	Until clocks.Instant `json:"-"`
}

// Row is the row of a node.
type Row struct {
	Node      string        `json:"node"`
	Heartbeat time.Duration `json:"heartbeat"` // the last one that is recorded
	Lease     time.Duration `json:"lease"`
}

// Left returns what is left of the trust window of GetsAnswer.
func (s Step) Left() time.Duration {
	return min(s.Until.Mono-s.Clock.Mono, s.Until.Wall.Sub(s.Clock.Wall))
}

// Recorder records steps. It is called with locks of the engine held: it must not block.
type Recorder interface{ Record(Step) }

type key struct{}

// With returns a context whose node emits its steps.
func With(ctx context.Context, to Recorder) context.Context { return context.WithValue(ctx, key{}, to) }

// From returns the recorder of a context, or nil.
func From(ctx context.Context) Recorder {
	to, _ := ctx.Value(key{}).(Recorder)
	return to
}
