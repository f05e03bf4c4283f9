package outboxtest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// Messages are those of the events from one number to another, under a term. The
// number is the position and the data of an event, and half of the events belong
// to each of the customers 0 and 1.
func Messages(term int64, from, to int) []outbox.Message {
	var all []outbox.Message
	for i := from; i <= to; i++ {
		all = append(all, outbox.Message{
			ID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i)), Topic: "orders", Role: "outbox", Term: term,
			Event: processor.Event{
				Cursor: processor.Cursor{Transaction: 7, Position: int64(i)}, Epoch: 5, Type: "order placed",
				Tags: []string{fmt.Sprint("customer=", i%2)}, Data: json.RawMessage(fmt.Sprint(i)),
				OccurredAt: time.Unix(1_763_700_000, 5_000_000).UTC(), Correlation: uuid.NewSHA1(uuid.Nil, []byte("correlation")),
			},
		})
	}
	return all
}
