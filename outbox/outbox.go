// Package outbox publishes the events of a log to other systems: each at least
// once, in order within a term, by the leader of a role. Every message says its
// id and its term, so that those who receive it can drop duplicates and what a
// stale leader sent.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// Role is the role that outboxes have by default, by its lock key.
func Role() tenure.Role { return tenure.KeyRole(processor.OutboxKey) }

// Message is an event on its way.
type Message struct {
	// ID is the same whenever the event is sent to the topic, and no other's.
	ID    uuid.UUID
	Topic string
	Role  string // the role under which it is sent
	Term  int64  // of that role: only ever grows
	Event processor.Event
}

// The names of what a message carries beside its data, for publishers that have
// headers.
const (
	HeaderID          = "Tenure-Message-Id"
	HeaderTopic       = "Tenure-Topic"
	HeaderRole        = "Tenure-Role"
	HeaderTerm        = "Tenure-Term"
	HeaderType        = "Tenure-Event-Type"
	HeaderPosition    = "Tenure-Position"
	HeaderOccurredAt  = "Tenure-Occurred-At"
	HeaderCorrelation = "Tenure-Correlation-Id"
	HeaderCausation   = "Tenure-Causation-Id"
)

// Headers returns what the message carries beside its data.
func (m Message) Headers() map[string]string {
	headers := map[string]string{
		HeaderID: m.ID.String(), HeaderTopic: m.Topic, HeaderRole: m.Role, HeaderTerm: fmt.Sprint(m.Term),
		HeaderType: m.Event.Type, HeaderPosition: m.Event.Cursor.String(),
		HeaderOccurredAt: m.Event.OccurredAt.UTC().Format(time.RFC3339Nano),
	}
	for name, id := range map[string]uuid.UUID{HeaderCorrelation: m.Event.Correlation, HeaderCausation: m.Event.Causation} {
		if id != uuid.Nil {
			headers[name] = id.String()
		}
	}
	return headers
}

// Publisher sends messages to another system.
type Publisher interface {
	// Name is what the publisher is called in the names of processors: it must
	// not change, since the progress is kept under it.
	Name() string
	// Publish sends messages in their order and returns how many were
	// acknowledged, from the first on. The others are sent again later. It
	// returns when nothing is under way any more; its context ends with the
	// term.
	Publish(ctx context.Context, messages []Message) (acknowledged int, err error)
}

// HealthChecker is implemented by publishers that know whether they can send. An
// unhealthy one is not asked to.
type HealthChecker interface {
	Healthy(ctx context.Context) error
}

// Mode says how many messages a publisher is given at once.
type Mode string

// The modes.
const (
	Batch      Mode = "batch"
	Individual Mode = "individual" // one at a time
)

// ModePreferrer is implemented by publishers that prefer a mode to Batch.
type ModePreferrer interface {
	PreferredMode() Mode
}

// Topic is what is published, and by whom.
type Topic struct {
	Name       string
	Log        processor.Log
	Selection  processor.Selection // default all events
	Publishers []Publisher

	// Processing sets times, sizes and policies; its other fields are ignored.
	Processing processor.Config
}

// Processors returns one processor for each publisher of a topic, named
// "topic/publisher", to be added to a group. Each keeps its own progress. It
// returns an error that matches tenure.ErrInvalidConfig if the topic cannot be
// used.
func Processors(topic Topic) ([]processor.Config, error) {
	if topic.Name == "" || len(topic.Publishers) == 0 {
		return nil, fmt.Errorf("%w: the topic %q needs a name and a publisher", tenure.ErrInvalidConfig, topic.Name)
	}
	var all []processor.Config
	for _, publisher := range topic.Publishers {
		if publisher.Name() == "" {
			return nil, fmt.Errorf("%w: a publisher of the topic %s has no name", tenure.ErrInvalidConfig, topic.Name)
		}
		config := topic.Processing
		config.Name, config.Kind = topic.Name+"/"+publisher.Name(), "outbox"
		config.Log, config.Selection = topic.Log, topic.Selection
		config.Handle, config.Reset = nil, nil
		config.Publish = topic.publish(publisher)
		all = append(all, config)
	}
	return all, nil
}

// ErrUnhealthy means that the publisher says that it cannot send at present.
var ErrUnhealthy = errors.New("the publisher is not healthy")

// publish returns what hands a batch to a publisher.
func (t Topic) publish(publisher Publisher) func(context.Context, *tenure.Term, []processor.Event) (int, error) {
	checker, _ := publisher.(HealthChecker)
	mode := Batch
	if p, ok := publisher.(ModePreferrer); ok {
		mode = p.PreferredMode()
	}
	return func(ctx context.Context, term *tenure.Term, events []processor.Event) (int, error) {
		if checker != nil {
			if err := checker.Healthy(ctx); err != nil {
				return 0, fmt.Errorf("%w: %w", ErrUnhealthy, err)
			}
		}
		messages := make([]Message, len(events))
		for i, event := range events {
			messages[i] = Message{ID: messageID(t.Name, event), Topic: t.Name, Role: term.Role().Name(), Term: term.Number(), Event: event}
		}
		if mode == Batch {
			return publisher.Publish(ctx, messages)
		}
		for i := range messages {
			if !term.Valid() {
				return i, tenure.ErrNotLeader
			}
			if n, err := publisher.Publish(ctx, messages[i:i+1]); n < 1 || err != nil {
				return i + max(0, min(n, 1)), err
			}
		}
		return len(messages), nil
	}
}

// space is where the ids of messages come from.
var space = uuid.MustParse("8f3c6a52-0f4e-5d0a-9a53-6b1f0d0c7e11")

// messageID derives the id of a message from the topic and the event's place.
func messageID(topic string, event processor.Event) uuid.UUID {
	return uuid.NewSHA1(space, fmt.Appendf(nil, "%s\x00%v", topic, event.Cursor))
}
