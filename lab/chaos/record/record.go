// Package record has what a chaos run records, for a checker to judge afterwards.
// All times are nanoseconds of CLOCK_MONOTONIC, which all processes of a machine
// share.
package record

import (
	"encoding/json"
	"os"
	"time"
)

// Settings are the durations of the nodes of a run.
type Settings struct {
	Lease         time.Duration `json:"lease"`
	Margin        time.Duration `json:"margin"`
	CheckInterval time.Duration `json:"check_interval"`
	FenceTimeout  time.Duration `json:"fence_timeout"`
	WatchPeriod   time.Duration `json:"watch_period"`
	Publish       time.Duration `json:"publish_timeout"` // of one webhook
}

// Begin is a term that began: some time between the first attempt of its node to
// acquire the role and the start of the work.
type Begin struct {
	Role, Node string
	Term       int64
	From, To   int64
}

// Lead is a time for which a node certainly trusted its term.
type Lead struct {
	Role, Node string
	Term       int64
	From, To   int64
}

// Write is a fenced write that its writer saw acknowledged.
type Write struct {
	Role, Node     string
	Term, Sequence int64
	Position       int64 // that the write got in the role's ledger
	From, To       int64 // call and return
}

// Entry is a fenced write that is in the database at the end.
type Entry struct {
	Role           string
	Position       int64
	Term, Sequence int64
}

// Fault is one step of the script, as it was carried out.
type Fault struct {
	Step     string // the line of the script
	Kind     string
	Node     int // counted from 1; 0 for none
	From, To int64
	Note     string `json:",omitempty"` // how it was carried out
	Failed   string `json:",omitempty"` // why it was not
}

// Tick is a job that a node started.
type Tick struct {
	Schedule, Node string
	Run            int64
	Attempt        int
	At             int64
}

// Run is a run of a schedule that is in the database at the end.
type Run struct {
	Schedule     string
	ID           int64
	ScheduledFor int64 // nanoseconds since 1970
	Ticks        int64
	State        string
	Effects      int64 // how many transactions of its job committed
	Manual       bool  // it was requested
}

// Pause is a time, by the server's clock, in which a schedule may have been paused.
type Pause struct {
	Schedule string
	From, To int64 // nanoseconds since 1970
}

// Backlog is how many events the view had not applied at a time in between.
type Backlog struct {
	From, To int64
	Behind   int64
}

// Figure is the backlog of the view that a person is shown.
type Figure struct {
	From, To int64
	Behind   int64
	Age      int64 // nanoseconds since it was measured
	More     bool  // there are more
	Leader   string
}

// Append is an event whose commit its writer saw acknowledged.
type Append struct {
	ID string
	At int64
}

// Event is an event that is in the database at the end, in the order of the log.
type Event struct {
	ID      string
	Amount  int64
	Applied int64 // how often the view applied it
	Letters int64 // how often the processor with dead letters handled it
}

// Delivery is a message that the receiver of webhooks acknowledged.
type Delivery struct {
	ID   string
	Term int64
	At   int64
}

// Sample is what a process used at a moment.
type Sample struct {
	Process     string
	At          int64
	Heap        uint64 // bytes, after a collection
	Resident    uint64 // bytes
	Descriptors int
	Goroutines  int
	Terms       int // that the node has
}

// History is everything that a run recorded.
type History struct {
	Settings   Settings
	Roles      []string // that must have a leader
	Start, End int64

	Faults     []Fault
	Begins     []Begin
	Leads      []Lead
	Writes     []Write
	Rejected   int // writes that were fenced
	Unknown    int // writes and appends without an answer
	Ledger     []Entry
	Schedules  map[string]string // the policy of each schedule
	Ticks      []Tick
	Runs       []Run
	Appended   []Append
	Events     []Event
	ViewSum    int64
	Deliveries []Delivery
	Pauses     []Pause
	Backlogs   []Backlog
	Figures    []Figure
	Samples    []Sample
	Complaints []string // found while the run lasted
}

// Write writes the history to a file.
func (h *History) Write(path string) error {
	content, err := json.MarshalIndent(h, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644) //nolint:gosec // it is a report
}
