package record

import (
	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Event is an event of an election.
type Event struct {
	Time          Time             `json:"time"`
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

// NewEvent returns the record of an event of a node's election. It leaves Error
// empty: how an error is worded is the caller's affair.
func NewEvent(node *tenure.Node, event tenure.Event) Event {
	record := Event{
		Time: Time(event.At), Event: event.Kind, Role: event.Role.Name(),
		Node: node.ID(), NodeName: node.Name(),
	}
	if event.Kind == tenure.EventStateChange {
		record.From, record.To = event.From.String(), event.To.String()
	}
	if event.Term != nil {
		number := event.Term.Number()
		record.Term = &number
		if vacant := event.Term.PrecedingVacancy(); event.Kind == tenure.EventAcquired && vacant >= 0 {
			seconds := vacant.Seconds()
			record.VacantSeconds = &seconds
		}
	}
	return record
}
