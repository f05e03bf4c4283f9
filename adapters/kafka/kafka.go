// Package kafka publishes the messages of an outbox to Kafka in batches, with an
// idempotent producer.
//
// Kafka keeps the order within a partition. Events with the same value of a tag of your
// choice go to the same partition; without such a tag, all events of a topic do. If a
// message fails in one partition, later messages of the batch are sent again, even those
// already stored by other partitions. Consumers recognize them by [outbox.HeaderID].
//
// The broker does not reject a stale leader. Consumers recognize its messages, within a
// partition, by [outbox.HeaderTerm].
package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
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
	// Name is the name of the publisher; see outbox.Publisher. Default: "kafka".
	Name string
	// Brokers lists some brokers of the Kafka cluster, as "host:port".
	Brokers []string
	// Topic returns the Kafka topic of a message. Default: the outbox's topic.
	Topic func(outbox.Message) string
	// KeyTag is the key of a tag, before the =. The tag's value is the key of the record
	// and so determines the partition. Without the tag, or by default, the key is the
	// name of the outbox's topic.
	KeyTag string
	// Timeout bounds the time until a batch is acknowledged. Default: 10 s.
	Timeout time.Duration
	// MaxRecord is the size limit of a record in bytes, at most the brokers' limit. A
	// larger message is poison. Default: 1,000,000.
	MaxRecord int
	// Options configure the client further, for example TLS and authentication. The
	// publisher overrides the options it depends on.
	Options []kgo.Opt
}

// Publisher sends messages to Kafka. It is safe for concurrent use.
type Publisher struct {
	config      Config
	client      *kgo.Client
	connections *connections
}

var _ outbox.Publisher = (*Publisher)(nil)

// New returns a Publisher with its own client. The client connects on first use. Close
// the publisher after use. An error matches tenure.ErrInvalidConfig.
func New(config Config) (*Publisher, error) {
	config.Name = cmp.Or(config.Name, "kafka")
	if config.Topic == nil {
		config.Topic = func(m outbox.Message) string { return m.Topic }
	}
	config.Timeout = cmp.Or(config.Timeout, 10*time.Second)
	config.MaxRecord = cmp.Or(config.MaxRecord, 1_000_000)
	if config.Timeout < 0 || config.MaxRecord < 0 || len(config.Brokers) == 0 {
		return nil, fmt.Errorf("%w: the publisher %s needs brokers, and positive limits", tenure.ErrInvalidConfig, config.Name)
	}
	seen := new(connections)
	client, err := kgo.NewClient(slices.Concat([]kgo.Opt{kgo.MetadataMinAge(metadataAge)}, config.Options, []kgo.Opt{
		kgo.SeedBrokers(config.Brokers...),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(int32(min(config.MaxRecord+batchOverhead, 1<<30))),
		kgo.ProducerLinger(0),
		// Cancel requests to a broker without a response. If it has stored a message
		// nevertheless, the message is sent again, with the same id.
		kgo.AllowIdempotentProduceCancellation(),
		// The processor retries, too. More retries would hide the error of the broker behind
		// the deadline of the batch.
		kgo.RecordRetries(2),
		kgo.WithHooks(seen),
	})...)
	if err != nil {
		return nil, fmt.Errorf("%w: the publisher %s: %w", tenure.ErrInvalidConfig, config.Name, err)
	}
	if off, ok := client.OptValue(kgo.DisableIdempotentWrite).(bool); ok && off {
		client.Close()
		return nil, fmt.Errorf("%w: the publisher %s cannot keep the order without idempotent writes: remove kgo.DisableIdempotentWrite",
			tenure.ErrInvalidConfig, config.Name)
	}
	return &Publisher{config, client, seen}, nil
}

// Close closes the client.
func (p *Publisher) Close() { p.client.Close() }

// Name implements [outbox.Publisher].
func (p *Publisher) Name() string { return p.config.Name }

// Publish implements [outbox.Publisher].
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	records := make([]*kgo.Record, 0, len(messages))
	var tooLarge error
	for _, m := range messages {
		record := p.record(m)
		if tooLarge = p.checkSize(m, record); tooLarge != nil {
			break // the client would send the later records
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
		if errors.Is(err, kerr.UnknownTopicID) {
			// The topic was deleted and created again. The client sends to the new topic only
			// after it has forgotten the old one.
			p.client.PurgeTopicsFromProducing(records[i].Topic)
		}
		if err != nil {
			return i, p.classify(err, began)
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

// Upper limits of the overhead of records, headers and batches, in bytes.
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
		return fmt.Errorf("%w: message %v has %d bytes; the limit is %d", processor.ErrPoison, m.ID, size, p.config.MaxRecord)
	}
	return nil
}

// classify maps an error to poison if the broker rejects the record itself, and otherwise
// to an outage. If the client has given up, it adds the last error of a connection since
// the batch began.
func (p *Publisher) classify(err error, began time.Time) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrRecordRetries) {
		err = fmt.Errorf("not acknowledged after %v: %w", time.Since(began).Round(time.Millisecond), cmp.Or(p.connections.errorSince(began), err))
	}
	reason := processor.ErrUnavailable
	for _, rejection := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord} {
		if errors.Is(err, rejection) {
			reason = processor.ErrPoison
		}
	}
	return fmt.Errorf("%w: publishing to Kafka: %w", reason, err)
}

// metadataAge is how long the client waits at least between two reads of the brokers'
// metadata. It retries a partition, or ends a batch whose time is over, after such a read.
const metadataAge = time.Second

// connections keeps the last error of a connection to a broker: the client retries it and
// does not return it.
type connections struct {
	mu  sync.Mutex
	err error
	at  time.Time
}

// OnBrokerConnect implements [kgo.HookBrokerConnect].
func (c *connections) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	c.record(err)
}

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (c *connections) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, exchange kgo.BrokerE2E) {
	c.record(exchange.Err())
}

func (c *connections) record(err error) {
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.at = err, time.Now()
}

// errorSince returns the last error since a time, or nil.
func (c *connections) errorSince(began time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.Before(began) {
		return nil
	}
	return c.err
}
