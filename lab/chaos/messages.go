//go:build linux

package main

import (
	"encoding/json"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/lab/chaos/record"
)

// Kinds of reports of a node.
const (
	opened    = "opened"    // the node has its first session
	connected = "connected" // Holds says whether
	began     = "began"     // a term
	leads     = "leads"     // from From
	followed  = "followed"  // led from From until To
	alive     = "alive"     // all that was reported holds at To
	wrote     = "wrote"
	fenced    = "fenced"
	unknown   = "unknown"
	started   = "started" // the run of a schedule
	appended  = "appended"
	sampled   = "sampled"
)

// message is what a report of a node carries.
type message struct {
	Node     string         `json:",omitempty"` // its id
	Role     string         `json:",omitempty"`
	Schedule string         `json:",omitempty"`
	ID       string         `json:",omitempty"`
	Term     int64          `json:",omitempty"`
	Sequence int64          `json:",omitempty"`
	Position int64          `json:",omitempty"`
	Run      int64          `json:",omitempty"`
	Attempt  int            `json:",omitempty"`
	From     int64          `json:",omitempty"`
	To       int64          `json:",omitempty"`
	Holds    bool           `json:",omitempty"`
	Sample   *record.Sample `json:",omitempty"`
}

func send(kind string, m message) {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has numbers and texts only
	}
	children.Send(children.Report{Kind: kind, Data: data})
}
