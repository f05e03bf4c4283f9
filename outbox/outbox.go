// Package outbox publishes the events of a log to other systems. The leader of a role
// publishes each event at least once, in order within a term. Every message has an id and
// a term number for receivers to drop duplicates and messages of a stale leader.
//
// The publishers for webhooks, NATS JetStream, Kafka and Watermill are packages below this
// one. Publishers with a broker's client are separate modules.
package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// Role returns the usual role of outboxes, "outbox".
func Role() tenure.Role { return tenure.NamedRole("outbox") }

// Topic is a selection of events, with its publishers.
type Topic struct {
	Name       string
	Log        processor.Log
	Selection  processor.Selection // default: all events
	Publishers []Publisher

	// Processing sets Start, times, sizes and policies. Its other fields are ignored.
	Processing processor.Config
}

// Processors returns one processor for each publisher of a topic, named
// "topic/publisher". Add them to a group. Each one has its own cursor. An error matches
// tenure.ErrInvalidConfig.
func Processors(topic Topic) ([]processor.Config, error) {
	if topic.Name == "" || len(topic.Publishers) == 0 {
		return nil, fmt.Errorf("%w: the topic %q needs a name and a publisher", tenure.ErrInvalidConfig, topic.Name)
	}
	named := map[string]bool{}
	var all []processor.Config
	for _, publisher := range topic.Publishers {
		name := publisher.Name()
		if name == "" || named[name] {
			return nil, fmt.Errorf("%w: each publisher of the topic %s must have a unique name; one has the name %q",
				tenure.ErrInvalidConfig, topic.Name, name)
		}
		named[name] = true
		mode := preferredMode(publisher)
		if mode != Batch && mode != Individual {
			return nil, fmt.Errorf("%w: the publisher %s prefers the mode %q; it must be %q or %q",
				tenure.ErrInvalidConfig, name, mode, Batch, Individual)
		}
		config := topic.Processing
		config.Name, config.Kind = topic.Name+"/"+name, "outbox"
		config.Log, config.Selection = topic.Log, topic.Selection
		config.Handle, config.Reset = nil, nil
		config.Publish = sender{topic.Name, publisher, mode}.send
		all = append(all, config)
	}
	return all, nil
}

func preferredMode(publisher Publisher) Mode {
	if p, ok := publisher.(ModePreferrer); ok {
		return p.PreferredMode()
	}
	return Batch
}

// ErrUnhealthy means that the publisher cannot send, as it reports. It counts as an
// outage.
var ErrUnhealthy = errors.New("the publisher is not healthy")

// sender passes the events of a topic to a publisher.
type sender struct {
	topic     string
	publisher Publisher
	mode      Mode
}

func (s sender) send(ctx context.Context, term *tenure.Term, events []processor.Event) (int, error) {
	if checker, ok := s.publisher.(HealthChecker); ok {
		if err := checker.Healthy(ctx); err != nil {
			return 0, fmt.Errorf("%w: %w: %w", ErrUnhealthy, processor.ErrUnavailable, err)
		}
	}
	messages := make([]Message, len(events))
	for i, event := range events {
		if len(event.Data) == 0 {
			event.Data = json.RawMessage("null") // some brokers treat an empty message as a deletion
		}
		messages[i] = Message{ID: messageID(s.topic, event), Topic: s.topic, Role: term.Role().Name(), Term: term.Number(), Event: event}
	}
	size := len(messages)
	if s.mode == Individual {
		size = 1
	}
	return s.publishParts(ctx, term, messages, size)
}

// publishParts publishes messages in parts. It checks the term before each part, because
// the context's timer can be late after a pause of the process.
func (s sender) publishParts(ctx context.Context, term *tenure.Term, messages []Message, size int) (int, error) {
	for begin := 0; begin < len(messages); begin += size {
		if !term.Valid() {
			return begin, tenure.ErrNotLeader
		}
		if ctx.Err() != nil {
			return begin, context.Cause(ctx)
		}
		n, err := s.publisher.Publish(ctx, messages[begin:begin+size])
		n = max(0, min(n, size))
		if n < size || err != nil {
			return begin + n, err
		}
	}
	return len(messages), nil
}
