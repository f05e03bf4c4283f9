package demo

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// demoLines shows the demonstration as lines of text or JSON.
type demoLines struct{ out *console.Output }

// introduction explains the lines of the demonstration. most is the number of failovers; 0 if it is
// not limited.
func introduction(database string, every time.Duration, most int) string {
	end := "Ctrl-C ends it."
	if most > 0 {
		end = fmt.Sprintf("It ends after %d failovers.", most)
	}
	return fmt.Sprintf("%d nodes on %s; the leader is killed every %v, and another node takes over. %s\n", Nodes, database, every, end)
}

// demoRecord is an event of the demonstration as printed.
type demoRecord struct {
	Time            console.Timestamp `json:"time"`
	Event           string            `json:"event"` // elected or killed
	NodeName        string            `json:"node_name"`
	PID             int               `json:"pid"`
	Term            int64             `json:"term"`
	Replaced        string            `json:"replaced,omitempty"`         // only elected: the killed leader's name
	FailoverSeconds *float64          `json:"failover_seconds,omitempty"` // only elected: since just before the kill
}

func (v *demoLines) elected(at time.Time, slot *demoSlot, term int64, replaced *failover) error {
	record := demoRecord{Time: console.Timestamp(at), Event: "elected", NodeName: slot.name, PID: slot.child.pid(), Term: term}
	text := fmt.Sprintf("%s  %s leads term %s", console.ShortTime(at), slot.name, shortTerm(term))
	if replaced != nil {
		record.Replaced, record.FailoverSeconds = replaced.from, inSeconds(replaced.took)
		text += fmt.Sprintf(", %s after %s was killed", milliseconds(replaced.took), replaced.from)
	}
	return v.out.Print(record, text)
}

func (v *demoLines) killed(at time.Time, slot *demoSlot, term int64) error {
	record := demoRecord{Time: console.Timestamp(at), Event: "killed", NodeName: slot.name, PID: slot.child.pid(), Term: term}
	return v.out.Print(record, fmt.Sprintf("%s  %s is killed", console.ShortTime(at), slot.name))
}

func (v *demoLines) draw(*demoShow) error { return nil }
