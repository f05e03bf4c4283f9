// Package watermill publishes the messages of an outbox through any publisher of
// Watermill, and so to all the brokers that Watermill knows.
//
// Order and duplicates are what that publisher makes of them: it must publish
// synchronously, and return an error for what was not acknowledged.
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
	Name string // as of outbox.Publisher
	// Topic returns the topic of a message, for Watermill. Default the outbox's.
	Topic func(outbox.Message) string
	// WholeBatches hands all messages of a batch for one topic over at once,
	// which is faster with many brokers. Of a batch that fails, everything is
	// sent again: Watermill does not say how much was published.
	WholeBatches bool
}

// Publisher sends messages through a publisher of Watermill. It is safe for
// concurrent use if that is.
type Publisher struct {
	config    Config
	publisher message.Publisher
}

var _ outbox.Publisher = (*Publisher)(nil)

// New makes a publisher. The other stays the caller's, who closes it; it must
// bound its own network calls, since Watermill gives it no context to end with
// but that of the messages. It returns an error that matches
// tenure.ErrInvalidConfig if the configuration cannot be used.
func New(publisher message.Publisher, config Config) (*Publisher, error) {
	if config.Name == "" || publisher == nil {
		return nil, fmt.Errorf("%w: a publisher for Watermill needs a name, and one of Watermill's", tenure.ErrInvalidConfig)
	}
	if config.Topic == nil {
		config.Topic = func(m outbox.Message) string { return m.Topic }
	}
	return &Publisher{config: config, publisher: publisher}, nil
}

// Name implements [outbox.Publisher].
func (p *Publisher) Name() string { return p.config.Name }

// Publish implements [outbox.Publisher]. Every error counts as an outage, since
// Watermill does not tell why, unless it matches [processor.ErrPoison].
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	published := 0
	for published < len(messages) {
		if ctx.Err() != nil {
			return published, context.Cause(ctx)
		}
		topic, part := p.next(messages[published:])
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

// next returns the messages to hand over together: one, or the first ones for
// one topic.
func (p *Publisher) next(messages []outbox.Message) (topic string, part []outbox.Message) {
	topic, count := p.config.Topic(messages[0]), 1
	for p.config.WholeBatches && count < len(messages) && p.config.Topic(messages[count]) == topic {
		count++
	}
	return topic, messages[:count]
}

// convert makes a message of Watermill, whose UUID is the message's id and whose
// metadata are its headers.
func convert(ctx context.Context, m outbox.Message) *message.Message {
	converted := message.NewMessageWithContext(ctx, m.ID.String(), message.Payload(m.Event.Data))
	converted.Metadata = m.Headers()
	return converted
}
