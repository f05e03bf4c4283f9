package outboxtest

import (
	"fmt"
	"strconv"

	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// Delivery is a message as it arrived.
type Delivery struct {
	ID       string
	Term     int64
	Position outbox.Position
	Key      string // of messages whose order matters among each other
}

// FromHeaders reads a delivery from what a message carries beside its data.
func FromHeaders(get func(name string) string, key string) (Delivery, error) {
	term, err := strconv.ParseInt(get(outbox.HeaderTerm), 10, 64)
	if err != nil {
		return Delivery{}, fmt.Errorf("term: %w", err)
	}
	position, err := outbox.ParsePosition(get(outbox.HeaderPosition))
	return Delivery{ID: get(outbox.HeaderID), Term: term, Position: position, Key: key}, err
}

// Entry is an event that was committed.
type Entry struct {
	Position processor.Cursor
	Key      string
}

// Result is what was found apart from faults.
type Result struct {
	Repeated int // deliveries of messages that had arrived before
	Stale    int // deliveries of a term after one of a later term
	Terms    int
}

// Check compares all that has arrived, in its order, with the log, in its order,
// and returns the faults.
func Check(log []Entry, deliveries []Delivery) (result Result, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	type inTerm struct {
		key  string
		term int64
	}
	var (
		ids       = map[processor.Cursor]string{}
		positions = map[string]processor.Cursor{}
		last      = map[inTerm]outbox.Position{}
		terms     = map[int64]bool{}
		consumers = map[string]*consumer{}
	)
	for i, d := range deliveries {
		if id, seen := ids[d.Position.Cursor]; seen && id != d.ID {
			fault("delivery %d: the event at %v came as %s and as %s", i, d.Position, id, d.ID)
		}
		if at, seen := positions[d.ID]; seen {
			result.Repeated++
			if at != d.Position.Cursor {
				fault("delivery %d: the message %s is the event at %v and that at %v", i, d.ID, at, d.Position)
			}
		}
		ids[d.Position.Cursor], positions[d.ID], terms[d.Term] = d.ID, d.Position.Cursor, true
		place := inTerm{d.Key, d.Term}
		if before := last[place]; before.Compare(d.Position) >= 0 {
			fault("delivery %d: %v came after %v in term %d", i, d.Position, before, d.Term)
		}
		last[place] = d.Position
		if consumers[d.Key] == nil {
			consumers[d.Key] = &consumer{applied: map[string]bool{}}
		}
		if consumers[d.Key].receive(d) {
			result.Stale++
		}
	}
	result.Terms = len(terms)
	logged := map[string][]processor.Cursor{}
	for _, entry := range log {
		logged[entry.Key] = append(logged[entry.Key], entry.Position)
		if _, arrived := ids[entry.Position]; !arrived {
			fault("the event at %v never arrived", entry.Position)
		}
	}
	for key, c := range consumers {
		if got, want := fmt.Sprint(c.accepted), fmt.Sprint(logged[key]); got != want {
			fault("a consumer of %q took %d events, not the %d of the log in their order", key, len(c.accepted), len(logged[key]))
		}
	}
	return result, faults
}

// consumer takes messages as the documentation asks consumers to.
type consumer struct {
	term     int64
	last     outbox.Position
	applied  map[string]bool // the ids
	accepted []processor.Cursor
}

// receive takes a message, or drops it if it is of a stale term or known.
func (c *consumer) receive(d Delivery) (stale bool) {
	if d.Term < c.term {
		return true
	}
	c.term = d.Term
	if c.last.Compare(d.Position) < 0 {
		c.last = d.Position
		if !c.applied[d.ID] { // a larger epoch can bring what was there
			c.applied[d.ID] = true
			c.accepted = append(c.accepted, d.Position.Cursor)
		}
	}
	return false
}
