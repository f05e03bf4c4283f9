package main

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
)

// eventRecord is an event of an election as it is printed.
type eventRecord struct{ eventFields }

type eventFields = record.Event // under this name since Event is one of its fields

func newEventRecord(node *tenure.Node, event tenure.Event) eventRecord {
	r := record.NewEvent(node, event)
	if event.Err != nil {
		r.Error = oneLine(event.Err)
	}
	return eventRecord{r}
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
