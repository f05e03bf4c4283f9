// Package outbox publishes the events of a log to other systems: each at least
// once, in order within a term, by the leader of a role. Every message says its
// id and its term, so that those who receive it can drop duplicates and what a
// stale leader sent.
//
// The publishers for webhooks, NATS JetStream, Kafka and Watermill are packages
// below this one; those that need a broker's client are modules of their own.
package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// Role is the role that outboxes have by default, by its lock key.
func Role() tenure.Role { return tenure.KeyRole(processor.OutboxKey) }

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
	named := map[string]bool{}
	var all []processor.Config
	for _, publisher := range topic.Publishers {
		name := publisher.Name()
		if name == "" || named[name] {
			return nil, fmt.Errorf("%w: each publisher of the topic %s needs a name of its own, and one is called %q",
				tenure.ErrInvalidConfig, topic.Name, name)
		}
		named[name] = true
		mode := modeOf(publisher)
		if mode != Batch && mode != Individual {
			return nil, fmt.Errorf("%w: the publisher %s prefers the mode %q; there are %q and %q",
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

func modeOf(publisher Publisher) Mode {
	if p, ok := publisher.(ModePreferrer); ok {
		return p.PreferredMode()
	}
	return Batch
}

// ErrUnhealthy means that the publisher says that it cannot send at present. It
// counts as an outage.
var ErrUnhealthy = errors.New("the publisher is not healthy")

// sender hands the batches of a topic to a publisher.
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
			event.Data = json.RawMessage("null") // to brokers, nothing at all can mean a deletion
		}
		messages[i] = Message{ID: messageID(s.topic, event), Topic: s.topic, Role: term.Role().Name(), Term: term.Number(), Event: event}
	}
	size := len(messages)
	if s.mode == Individual {
		size = 1
	}
	return s.inParts(ctx, term, messages, size)
}

// inParts publishes messages, some at a time. Each part is begun only under a
// term that is trusted: the timer that ends the context of one that is not can be
// late in a process that was stopped.
func (s sender) inParts(ctx context.Context, term *tenure.Term, messages []Message, size int) (int, error) {
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
