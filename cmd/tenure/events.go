package main

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// eventRecord is an event of an election as it is printed.
type eventRecord struct {
	Time          timestamp        `json:"time"`
	Event         tenure.EventKind `json:"event"`
	From          string           `json:"from,omitempty"`
	To            string           `json:"to,omitempty"`
	Role          string           `json:"role"`
	Term          *int64           `json:"term"` // null if the event concerns none
	Node          uuid.UUID        `json:"node"`
	NodeName      string           `json:"node_name"`
	VacantSeconds *float64         `json:"vacant_seconds,omitempty"` // of acquired, if known
	Error         string           `json:"error,omitempty"`
}

func newEventRecord(node *tenure.Node, event tenure.Event) eventRecord {
	record := eventRecord{
		Time: timestamp(event.At), Event: event.Kind, Role: event.Role.Name(),
		Node: node.ID(), NodeName: node.Name(),
	}
	if event.Kind == tenure.EventStateChange {
		record.From, record.To = event.From.String(), event.To.String()
	}
	if event.Term != nil {
		number := event.Term.Number()
		record.Term = &number
		if vacant := event.Term.Vacant(); event.Kind == tenure.EventAcquired && vacant >= 0 {
			seconds := vacant.Seconds()
			record.VacantSeconds = &seconds
		}
	}
	if event.Err != nil {
		record.Error = oneLine(event.Err)
	}
	return record
}

// text is the record as a line for people.
func (r eventRecord) text() string {
	line := fmt.Sprintf("%s  %s  %s", shortTime(time.Time(r.Time)), r.Role, r.Event)
	if r.From != "" {
		line += fmt.Sprintf("  %s -> %s", r.From, r.To)
	}
	if r.Term != nil {
		line += fmt.Sprintf("  term %d", *r.Term)
	}
	if r.VacantSeconds != nil {
		vacant := time.Duration(*r.VacantSeconds * float64(time.Second))
		line += fmt.Sprintf("  vacant for %v", vacant.Round(time.Microsecond))
	}
	if r.Error != "" {
		line += "  " + r.Error
	}
	return line
}
