// Package children starts copies of a test program as child processes, and reads
// what they report: one JSON object a line, on their standard output. It records
// when each said that it leads, so that tests can look for overlaps.
package children

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// Report is a line that a child prints. Each program has its kinds of reports;
// those of [Watch] are "lead", "follow" and "gap".
type Report struct {
	Kind     string
	At       int64           // nanoseconds since 1970
	Last     int64           `json:",omitempty"` // of [Watch]: the look before
	Term     int64           `json:",omitempty"`
	Sequence int64           `json:",omitempty"`
	Lead     bool            `json:",omitempty"` // whether the child says that it leads
	Error    string          `json:",omitempty"`
	Data     json.RawMessage `json:",omitempty"` // of programs that report more
}

// Time returns when the report was made.
func (r Report) Time() time.Time { return time.Unix(0, r.At) }

var printing sync.Mutex

// Send prints a report for the parent process; its time is now unless it has one.
func Send(r Report) {
	if r.At == 0 {
		r.At = time.Now().UnixNano()
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // Data is not JSON
	}
	printing.Lock()
	defer printing.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n')) // without a reader the child is about to be killed
}

// State is something that a child looks at, with the kinds of reports when it
// begins and ends.
type State struct {
	Holds        func() bool
	Begins, Ends string
}

// Leads is the state of a child that says that it leads.
func Leads(leads func() bool) State { return State{leads, "lead", "follow"} }

// Watch looks once a millisecond at states and reports their changes. The process
// may be interrupted within a look: a state lasts from after its first look to
// before its last one, so that an overlap is one for certain. If two looks are
// further apart than gap, which may be 0, it reports a "gap" with what the second
// said of the first state. It does not return.
func Watch(gap time.Duration, states ...State) {
	held := make([]bool, len(states))
	for last := time.Now(); ; time.Sleep(time.Millisecond) {
		before := time.Now()
		for i, state := range states {
			holds := state.Holds()
			if i == 0 && gap > 0 && before.Sub(last) > gap {
				Send(Report{Kind: "gap", Last: last.UnixNano(), Lead: holds})
			}
			if holds == held[i] {
				continue
			}
			kind := state.Begins
			if held[i] {
				kind = state.Ends
			}
			held[i] = holds
			Send(Report{Kind: kind, Last: last.UnixNano()})
		}
		last = before
	}
}
