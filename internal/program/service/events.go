package service

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// EventRecord is an event of an election as printed.
type EventRecord struct{ eventFields }

type eventFields = record.Event // Event is one of its fields

// NewEventRecord returns the record of a node's event.
func NewEventRecord(node *tenure.Node, event tenure.Event) EventRecord {
	r := record.NewEvent(node, event)
	if event.Err != nil {
		r.Error = console.OneLine(event.Err)
	}
	return EventRecord{r}
}

// Text returns the record as a line.
func (r EventRecord) Text() string {
	line := fmt.Sprintf("%s  %s  %s", console.ShortTime(time.Time(r.Time)), r.Role, r.Event)
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
