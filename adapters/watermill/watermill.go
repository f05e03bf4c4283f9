// Package watermill publishes the messages of an outbox through any publisher of
// Watermill, and so to all brokers with one.
//
// Order and duplicates depend on the publisher. It must publish synchronously and return
// an error for unacknowledged messages.
package watermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// Config configures a publisher. Name must be set.
type Config struct {
	Name string // see outbox.Publisher
	// Topic returns the Watermill topic of a message. Default: the outbox's topic.
	Topic func(outbox.Message) string
	// WholeBatches passes all messages of a batch for one topic in one call, which is
	// faster with many brokers. If the call fails, all of them are sent again, because
	// Watermill does not report how many were published.
	WholeBatches bool
}

// Publisher sends messages through a publisher of Watermill. It is safe for concurrent
// use if the latter is.
type Publisher struct {
	config    Config
	publisher message.Publisher
}

var _ outbox.Publisher = (*Publisher)(nil)

// New returns a Publisher on a publisher of Watermill. The caller closes the latter. It
// must bound its network calls itself, because it gets no context except the messages'.
// An error matches tenure.ErrInvalidConfig.
func New(publisher message.Publisher, config Config) (*Publisher, error) {
	if config.Name == "" || publisher == nil {
		return nil, fmt.Errorf("%w: the configuration needs a name and a publisher of Watermill", tenure.ErrInvalidConfig)
	}
	if config.Topic == nil {
		config.Topic = func(m outbox.Message) string { return m.Topic }
	}
	return &Publisher{config: config, publisher: publisher}, nil
}

// Name implements [outbox.Publisher].
func (p *Publisher) Name() string { return p.config.Name }

// Publish implements [outbox.Publisher]. An error counts as an outage unless it matches
// [processor.ErrPoison], because Watermill does not report causes.
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	published := 0
	for published < len(messages) {
		if ctx.Err() != nil {
			return published, context.Cause(ctx)
		}
		topic, part := p.nextPart(messages[published:])
		converted := make([]*message.Message, len(part))
		for i, m := range part {
			converted[i] = convert(ctx, m)
		}
		if err := p.publisher.Publish(topic, converted...); errors.Is(err, processor.ErrPoison) {
			return published, err
		} else if err != nil {
			return published, fmt.Errorf("%w: publishing through Watermill: %w", processor.ErrUnavailable, err)
		}
		published += len(part)
	}
	return published, nil
}

// nextPart returns the messages of the next call: one, or the first ones with the same
// topic.
func (p *Publisher) nextPart(messages []outbox.Message) (topic string, part []outbox.Message) {
	topic, count := p.config.Topic(messages[0]), 1
	for p.config.WholeBatches && count < len(messages) && p.config.Topic(messages[count]) == topic {
		count++
	}
	return topic, messages[:count]
}

// convert returns a message of Watermill with the id of m as its UUID and the headers
// of m as its metadata.
func convert(ctx context.Context, m outbox.Message) *message.Message {
	converted := message.NewMessageWithContext(ctx, m.ID.String(), message.Payload(m.Event.Data))
	converted.Metadata = m.Headers()
	return converted
}
