// Package kafka publishes the messages of an outbox to Kafka, with an idempotent
// producer, many at a time.
//
// Kafka keeps the order within a partition. Events with the same value of a tag
// that you choose go to the same partition; without one, all events of a topic do.
// When a batch fails in one partition, what others have taken since the first
// message that failed is sent again, and consumers know it by the header
// [outbox.HeaderID].
//
// The broker does not keep a stale leader out: consumers tell it, within a
// partition, by the header [outbox.HeaderTerm].
package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// Config configures a publisher. Brokers must be set.
type Config struct {
	// Name is the publisher's, as of outbox.Publisher. Default "kafka".
	Name string
	// Brokers are some brokers of the cluster, as "host:port".
	Brokers []string
	// Topic returns the topic of a message, in Kafka. Default the outbox's.
	Topic func(outbox.Message) string
	// KeyTag is the key of the tag, before the =, whose value becomes the key of
	// the record, by which the partition is chosen. Events that do not have it,
	// and all by default, get the name of the outbox's topic as their key.
	KeyTag string
	// Timeout is how long to wait until a batch is acknowledged. Default 10 s.
	Timeout time.Duration
	// MaxRecord is the most bytes in a record; it must not be more than the
	// brokers take. A larger one can never be sent. Default 1,000,000.
	MaxRecord int
	// Options configure the client further, such as its TLS and authentication.
	// Those that this publisher depends on cannot be changed.
	Options []kgo.Opt
}

// Publisher sends messages to Kafka. It is safe for concurrent use.
type Publisher struct {
	config Config
	client *kgo.Client
}

var _ outbox.Publisher = (*Publisher)(nil)

// New makes a publisher, with a client of its own that connects when it is used.
// It returns an error that matches tenure.ErrInvalidConfig if the configuration
// cannot be used. Close it.
func New(config Config) (*Publisher, error) {
	if config.Name == "" {
		config.Name = "kafka"
	}
	if config.Topic == nil {
		config.Topic = func(m outbox.Message) string { return m.Topic }
	}
	if config.Timeout == 0 {
		config.Timeout = 10 * time.Second
	}
	if config.MaxRecord == 0 {
		config.MaxRecord = 1_000_000
	}
	if config.Timeout < 0 || config.MaxRecord < 0 || len(config.Brokers) == 0 {
		return nil, fmt.Errorf("%w: the publisher %s needs brokers, and limits that are positive", tenure.ErrInvalidConfig, config.Name)
	}
	client, err := kgo.NewClient(slices.Concat(config.Options, []kgo.Opt{
		kgo.SeedBrokers(config.Brokers...),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(int32(min(config.MaxRecord+batchOverhead, 1<<30))),
		kgo.ProducerLinger(0),
		// A broker that does not answer is given up. What it has taken all the same
		// comes twice, and is known by its id.
		kgo.AllowIdempotentProduceCancellation(),
	})...)
	if err != nil {
		return nil, fmt.Errorf("%w: the publisher %s: %w", tenure.ErrInvalidConfig, config.Name, err)
	}
	if off, ok := client.OptValue(kgo.DisableIdempotentWrite).(bool); ok && off {
		client.Close()
		return nil, fmt.Errorf("%w: the publisher %s keeps no order without idempotent writes: leave kgo.DisableIdempotentWrite out",
			tenure.ErrInvalidConfig, config.Name)
	}
	return &Publisher{config: config, client: client}, nil
}

// Close closes the client.
func (p *Publisher) Close() { p.client.Close() }

// Name implements [outbox.Publisher].
func (p *Publisher) Name() string { return p.config.Name }

// Publish implements [outbox.Publisher].
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	limited, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	records := make([]*kgo.Record, 0, len(messages))
	var tooLarge error
	for _, m := range messages {
		record := p.record(m)
		if tooLarge = p.checkSize(m, record); tooLarge != nil {
			break // the client would send the records behind it
		}
		records = append(records, record)
	}
	failures := make([]error, len(records))
	var acknowledging sync.WaitGroup
	for i, record := range records {
		acknowledging.Add(1)
		p.client.Produce(limited, record, func(_ *kgo.Record, err error) {
			failures[i] = err
			acknowledging.Done()
		})
	}
	acknowledging.Wait()
	for i, err := range failures {
		if err != nil {
			return i, p.blame(err)
		}
	}
	return len(records), tooLarge
}

func (p *Publisher) record(m outbox.Message) *kgo.Record {
	key, found := "", false
	if p.config.KeyTag != "" {
		key, found = m.Event.Tag(p.config.KeyTag)
	}
	if !found {
		key = m.Topic
	}
	record := &kgo.Record{Topic: p.config.Topic(m), Key: []byte(key), Value: m.Event.Data, Timestamp: m.Event.OccurredAt}
	for name, value := range m.Headers() {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	slices.SortFunc(record.Headers, func(a, b kgo.RecordHeader) int { return cmp.Compare(a.Key, b.Key) })
	return record
}

// What a record and a batch take at most beside keys and values.
const (
	recordOverhead = 64
	headerOverhead = 16
	batchOverhead  = 256
)

func (p *Publisher) checkSize(m outbox.Message, record *kgo.Record) error {
	size := recordOverhead + len(record.Key) + len(record.Value)
	for _, header := range record.Headers {
		size += headerOverhead + len(header.Key) + len(header.Value)
	}
	if size > p.config.MaxRecord {
		return fmt.Errorf("%w: message %v has %d bytes; at most %d are sent", processor.ErrPoison, m.ID, size, p.config.MaxRecord)
	}
	return nil
}

// blame says what an error means for the outbox. But for records that the broker
// refuses for what they are, none is the message's fault.
func (p *Publisher) blame(err error) error {
	reason := processor.ErrUnavailable
	for _, refusal := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord} {
		if errors.Is(err, refusal) {
			reason = processor.ErrPoison
		}
	}
	return fmt.Errorf("%w: publishing to Kafka: %w", reason, err)
}
