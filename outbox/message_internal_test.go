package outbox

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/processor"
)

// The id depends on the topic and the event, and on nothing else.
func TestMessageIDIsStable(t *testing.T) {
	t.Parallel()
	event := processor.Event{Cursor: processor.Cursor{Transaction: 7, Position: 42}, Type: "placed", OccurredAt: time.Unix(1, 0)}
	seen := map[uuid.UUID]string{messageID("orders", event): "the event"}
	if event.OccurredAt = event.OccurredAt.UTC(); len(seen) != 1 || seen[messageID("orders", event)] == "" {
		t.Error("the id depends on the time zone")
	}
	for name, id := range map[string]uuid.UUID{
		"in another topic":           messageID("invoices", event),
		"in another transaction":     messageID("orders", processor.Event{Cursor: processor.Cursor{Transaction: 74, Position: 2}, Type: "placed", OccurredAt: event.OccurredAt}),
		"at another position":        messageID("orders", processor.Event{Cursor: processor.Cursor{Transaction: 7, Position: 43}, Type: "placed", OccurredAt: event.OccurredAt}),
		"at the place of a lost one": messageID("orders", processor.Event{Cursor: event.Cursor, Type: "placed", OccurredAt: event.OccurredAt.Add(time.Microsecond)}),
		"of another type":            messageID("orders", processor.Event{Cursor: event.Cursor, Type: "paid", OccurredAt: event.OccurredAt}),
	} {
		if other, taken := seen[id]; taken {
			t.Errorf("an event %s has the id of %s", name, other)
		}
		seen[id] = "one " + name
	}
}
