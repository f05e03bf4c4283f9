package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// world is an installation with a log.
type world struct {
	*postgrestest.Installation
	store *eventstore.Store
}

func newWorld(t testing.TB) *world {
	t.Helper()
	i := postgrestest.New(t, "processors", "events")
	return &world{i, eventstore.New(i.Backend, eventstore.Config{})}
}

// run publishes a topic on a new node until the test ends or stop is called. The default
// log of the topic is the world's.
func (w *world) run(topic outbox.Topic) (stop func()) {
	w.Helper()
	return w.under(outbox.Role(), topic)
}

// under is run with a role.
func (w *world) under(role tenure.Role, topic outbox.Topic) (stop func()) {
	w.Helper()
	node := w.Node("", tenure.Config{})
	group, err := processor.NewGroup(node, role, w.Pool, processor.GroupConfig{})
	if err != nil {
		w.Fatal(err)
	}
	if topic.Log.Name == "" {
		topic.Log = w.store.Log()
	}
	processors, err := outbox.Processors(topic)
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range processors {
		if err := group.Add(p); err != nil {
			w.Fatal(err)
		}
	}
	run := postgrestest.Run(w, group.Run)
	return func() {
		run()
		postgrestest.Close(w, node)
	}
}

func (w *world) append(numbers ...int) {
	w.Helper()
	events := make([]eventstore.NewEvent, len(numbers))
	for i, number := range numbers {
		events[i] = eventstore.NewEvent{Type: "placed", Data: number}
	}
	if err := w.store.Append(w.Context(), w.Pool, events...); err != nil {
		w.Fatal(err)
	}
}

// recorder is a publisher that records its messages.
type recorder struct {
	name string
	mode outbox.Mode

	mu      sync.Mutex
	batches [][]outbox.Message
	sick    error
	limit   int   // how many messages of the next batch it acknowledges, if failure is set
	failure error // of the next batch
}

func (r *recorder) Name() string { return r.name }

func (r *recorder) PreferredMode() outbox.Mode { return r.mode }

func (r *recorder) Healthy(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sick
}

func (r *recorder) Publish(_ context.Context, messages []outbox.Message) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		failure := r.failure
		r.failure = nil
		r.batches = append(r.batches, messages[:r.limit])
		return r.limit, failure
	}
	r.batches = append(r.batches, messages)
	return len(messages), nil
}

func (r *recorder) recover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sick = nil
}

// received returns the sizes of the batches, the data of all messages, and the messages.
func (r *recorder) received() (sizes []int, text string, messages []outbox.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, batch := range r.batches {
		sizes = append(sizes, len(batch))
		for _, m := range batch {
			text += fmt.Sprintf("%s ", m.Event.Data)
			messages = append(messages, m)
		}
	}
	return sizes, text, messages
}
