package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// Every publisher of a topic gets every event, in its mode and with the same id.
func TestPublishersGetTheirModes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3)
	batch, single := &recorder{name: "batch", mode: outbox.Batch}, &recorder{name: "single", mode: outbox.Individual}
	w.run(outbox.Topic{Name: "orders", Publishers: []outbox.Publisher{batch, single}})
	for _, r := range []*recorder{batch, single} {
		w.Await(r.name, func() bool { _, text, _ := r.received(); return text == "1 2 3 " })
	}
	sizes, _, together := batch.received()
	if !slices.Equal(sizes, []int{3}) {
		t.Errorf("batches of %v", sizes)
	}
	sizes, _, alone := single.received()
	if !slices.Equal(sizes, []int{1, 1, 1}) {
		t.Errorf("single messages in batches of %v", sizes)
	}
	for i, m := range together {
		if m.ID == uuid.Nil || m.ID != alone[i].ID || i > 0 && m.ID == together[i-1].ID {
			t.Errorf("message %d has the ids %v and %v", i, m.ID, alone[i].ID)
		}
		if m.Topic != "orders" || m.Role != "outbox" || m.Term < 1 {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	status, err := processor.NewAdmin(w.Backend, w.Pool).List(t.Context(), "orders/batch", "orders/single")
	if err != nil || len(status) != 2 || status[0].Kind != "outbox" {
		t.Errorf("the processors are %+v, %v", status, err)
	}
}

func TestRoleWithKeyLeadsOutbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	r := &recorder{name: "queue", mode: outbox.Batch}
	const key = 0x464F52470001
	w.under(outbox.Role().WithKey(key), outbox.Topic{Name: "orders", Publishers: []outbox.Publisher{r}})
	w.Await("the event", func() bool { _, text, _ := r.received(); return text == "1 " })
	if _, _, messages := r.received(); messages[0].Role != "outbox" {
		t.Errorf("the message is of the role %q, want outbox", messages[0].Role)
	}
	if got := postgrestest.Value[int64](w.Installation, "SELECT lock_key::bigint FROM {terms} WHERE role = 'outbox'"); got != key {
		t.Errorf("the role has the key %#x, want %#x", got, int64(key))
	}
}

func TestEmptyDataBecomesNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	r := &recorder{name: "queue", mode: outbox.Batch}
	log := processor.LogFromQuery("without data", pgtest.SQL(w.Backend, `
		SELECT transaction_id, position, type, tags, NULL::jsonb AS data, occurred_at, correlation_id, causation_id
		FROM {events}`))
	w.run(outbox.Topic{Name: "orders", Log: log, Publishers: []outbox.Publisher{r}})
	w.Await("the event", func() bool { _, text, _ := r.received(); return text == "null " })
}

func TestRewindSendsSameIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2)
	r := &recorder{name: "queue", mode: outbox.Batch}
	w.run(outbox.Topic{Name: "orders", Publishers: []outbox.Publisher{r}})
	w.Await("both events", func() bool { _, text, _ := r.received(); return text == "1 2 " })
	if err := processor.NewAdmin(w.Backend, w.Pool).Rewind(t.Context(), "orders/queue", processor.Cursor{}, "the test"); err != nil {
		t.Fatal(err)
	}
	w.Await("both again", func() bool { _, text, _ := r.received(); return text == "1 2 1 2 " })
	if _, _, all := r.received(); all[0].ID != all[2].ID || all[1].ID != all[3].ID {
		t.Errorf("other ids the second time: %v", all)
	}
}

func TestTopicStartsAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx, err := w.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // does nothing after the commit
	if err := w.store.Append(t.Context(), tx, eventstore.NewEvent{Type: "placed", Data: 1}); err != nil {
		t.Fatal(err)
	}
	r := &recorder{name: "queue", mode: outbox.Batch}
	w.run(outbox.Topic{Name: "orders", Publishers: []outbox.Publisher{r}, Processing: processor.Config{Start: processor.Start{End: true}}})
	management := processor.NewAdmin(w.Backend, w.Pool)
	w.Await("the first claim", func() bool {
		status, err := management.List(t.Context(), "orders/queue")
		return err == nil && len(status) == 1 && status[0].Term > 0
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Await("the event", func() bool { _, text, _ := r.received(); return text == "1 " })
}

// Both publishers of a topic start where the topic says.
func TestTopicStartsAtTimeOrAfterCursor(t *testing.T) {
	t.Parallel()
	clock := func(minute int) time.Time { return time.Date(2026, 1, 1, 1, minute, 0, 0, time.UTC) }
	for name, start := range map[string]func(w *world) processor.Start{
		"time": func(*world) processor.Start { return processor.Start{Time: clock(3)} },
		"cursor": func(w *world) (start processor.Start) {
			second := pgtest.SQL(w.Backend, "SELECT transaction_id, position FROM {events} ORDER BY position OFFSET 1 LIMIT 1")
			if err := w.Pool.QueryRow(w.Context(), second).Scan(&start.After.Transaction, &start.After.Position); err != nil {
				w.Fatal(err)
			}
			return start
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for number := 1; number <= 4; number++ {
				event := eventstore.NewEvent{Type: "placed", Data: number, OccurredAt: clock(number)}
				if err := w.store.Append(t.Context(), w.Pool, event); err != nil {
					t.Fatal(err)
				}
			}
			w.Await("the events to be final", func() bool { // transactions of other tests may be open
				return postgrestest.Value[bool](w.Installation, "SELECT max(transaction_id) < pg_snapshot_xmin(pg_current_snapshot()) FROM {events}")
			})
			batch, single := &recorder{name: "batch", mode: outbox.Batch}, &recorder{name: "single", mode: outbox.Individual}
			w.run(outbox.Topic{
				Name: "orders", Publishers: []outbox.Publisher{batch, single},
				Processing: processor.Config{Start: start(w)},
			})
			for _, r := range []*recorder{batch, single} {
				w.Await(r.name+" to receive the last event", func() bool { _, text, _ := r.received(); return strings.HasSuffix(text, "4 ") })
				if _, text, _ := r.received(); text != "3 4 " {
					t.Errorf("%s received %q, want the events 3 and 4", r.name, text)
				}
			}
		})
	}
}

// Messages that were acknowledged before the failed one are not sent again.
func TestFailedMessageBlocksTheRestOfItsBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1, 2, 3, 4)
	r := &recorder{name: "queue", mode: outbox.Batch, limit: 2, failure: fmt.Errorf("%w: full", processor.ErrUnavailable)}
	w.run(outbox.Topic{
		Name: "orders", Publishers: []outbox.Publisher{r},
		Processing: processor.Config{Retry: retry.FixedInterval{Interval: time.Millisecond}},
	})
	w.Await("all events", func() bool { _, text, _ := r.received(); return strings.HasSuffix(text, "4 ") })
	if _, text, _ := r.received(); text != "1 2 3 4 " {
		t.Errorf("sent %s", text)
	}
}

// While a publisher is unhealthy, the status shows its error.
func TestUnhealthyPublisherGetsNoMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	r := &recorder{name: "queue", mode: outbox.Batch, sick: errors.New("no broker")}
	w.run(outbox.Topic{
		Name: "orders", Publishers: []outbox.Publisher{r},
		Processing: processor.Config{Retry: retry.FixedInterval{Interval: time.Millisecond}, MaxAttempts: 1},
	})
	management := processor.NewAdmin(w.Backend, w.Pool)
	w.Await("some attempts", func() bool {
		status, err := management.List(t.Context(), "orders/queue")
		return err == nil && len(status) == 1 && status[0].Errors > 3 && status[0].Status == processor.Active &&
			strings.Contains(status[0].LastError, "no broker")
	})
	if sizes, _, _ := r.received(); len(sizes) > 0 {
		t.Errorf("the publisher was given batches of %v", sizes)
	}
	r.recover()
	w.Await("the event", func() bool { _, text, _ := r.received(); return text == "1 " })
}

func TestInvalidTopicsAreRejected(t *testing.T) {
	t.Parallel()
	queue := &recorder{name: "queue", mode: outbox.Batch}
	for _, topic := range []outbox.Topic{
		{Publishers: []outbox.Publisher{queue}},
		{Name: "orders"},
		{Name: "orders", Publishers: []outbox.Publisher{queue, queue}},
		{Name: "orders", Publishers: []outbox.Publisher{&recorder{mode: outbox.Batch}}},
		{Name: "orders", Publishers: []outbox.Publisher{&recorder{name: "queue", mode: "often"}}},
	} {
		if _, err := outbox.Processors(topic); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%+v: %v", topic, err)
		}
	}
}

func TestHeadersDescribeTheMessage(t *testing.T) {
	t.Parallel()
	m := outbox.Message{ID: uuid.UUID{1}, Topic: "orders", Role: "outbox", Term: 1763700000000, Event: processor.Event{
		Cursor: processor.Cursor{Transaction: 742, Position: 1031}, Epoch: 5, Type: "placed",
		OccurredAt: time.Date(2026, 11, 21, 10, 0, 0, 5000, time.FixedZone("", 3600)), Causation: uuid.UUID{2},
	}}
	got := m.Headers()
	for name, want := range map[string]string{
		outbox.HeaderID: m.ID.String(), outbox.HeaderTopic: "orders", outbox.HeaderRole: "outbox", outbox.HeaderTerm: "1763700000000",
		outbox.HeaderType: "placed", outbox.HeaderPosition: "5:742:1031", outbox.HeaderOccurredAt: "2026-11-21T09:00:00.000005Z",
		outbox.HeaderCausation: m.Event.Causation.String(),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, found := got[outbox.HeaderCorrelation]; found {
		t.Error("there is a correlation id")
	}
}
