package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/kafka"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/processor"
)

// world is a Kafka cluster of one broker with a topic of several partitions and a consumer.
type world struct {
	testing.TB
	cluster *kfake.Cluster
	broker  string
	mu      sync.Mutex
	records []*kgo.Record
}

func newWorld(t testing.TB) *world {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	w := &world{TB: t, cluster: cluster, broker: cluster.ListenAddrs()[0]}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker), kgo.ConsumeTopics("orders"), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var consuming sync.WaitGroup
	consuming.Go(func() {
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			w.mu.Lock()
			w.records = append(w.records, fetches.Records()...)
			w.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		consuming.Wait()
		client.Close()
	})
	return w
}

func (w *world) publisher(config kafka.Config) *kafka.Publisher {
	w.Helper()
	config.Brokers = []string{w.broker}
	p, err := kafka.New(config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Close)
	return p
}

func (w *world) all() []*kgo.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.records)
}

// await waits until count records were consumed.
func (w *world) await(count int) []*kgo.Record {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); len(w.all()) < count; <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("%d records were consumed, want %d", len(w.all()), count)
		}
	}
	return w.all()
}

func header(record *kgo.Record, name string) string {
	for _, h := range record.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func (w *world) deliveries() (all []outboxtest.Delivery) {
	w.Helper()
	for _, record := range w.all() {
		d, err := outboxtest.FromHeaders(func(name string) string { return header(record, name) }, string(record.Key))
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func TestFaultsLoseNoMessage(t *testing.T) {
	w := newWorld(t)
	outboxtest.Run(t, outboxtest.Options{Target: w.broker, Deliveries: w.deliveries, Keyed: true})
}

func TestRecordsCarryKeysAndHeaders(t *testing.T) {
	t.Parallel()
	for tag, keys := range map[string][2]string{"customer": {"0", "1"}, "region": {"orders", "orders"}, "": {"orders", "orders"}} {
		w := newWorld(t)
		p := w.publisher(kafka.Config{KeyTag: tag})
		if n, err := p.Publish(t.Context(), outboxtest.Messages(3, 1, 50)); n != 50 || err != nil {
			t.Fatalf("%d acknowledged, %v", n, err)
		}
		partitions := map[string]int32{}
		last := map[string]string{}
		for _, record := range w.await(50) {
			number := string(record.Value)
			if partition, seen := partitions[string(record.Key)]; seen && partition != record.Partition {
				t.Errorf("%s is in the partitions %d and %d", record.Key, partition, record.Partition)
			}
			partitions[string(record.Key)] = record.Partition
			if before := last[string(record.Key)]; len(before) > len(number) || len(before) == len(number) && before >= number {
				t.Errorf("%s came after %s", number, before)
			}
			last[string(record.Key)] = number
			var i int
			if _, err := fmt.Sscan(number, &i); err != nil {
				t.Fatal(err)
			}
			want := outboxtest.Messages(3, i, i)[0]
			if string(record.Key) != keys[i%2] || !record.Timestamp.Equal(want.Event.OccurredAt) {
				t.Errorf("%d is stored as %+v", i, record)
			}
			for name, value := range want.Headers() {
				if header(record, name) != value {
					t.Errorf("%d has %s %q, want %q", i, name, header(record, name), value)
				}
			}
		}
	}
}

// A message that is too large ends the batch, so that no later one overtakes it.
func TestTooLargeMessageIsPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := outboxtest.Messages(3, 1, 4)
	all[2].Event.Data = json.RawMessage(`"` + strings.Repeat("x", 4000) + `"`)
	n, err := w.publisher(kafka.Config{MaxRecord: 4000}).Publish(t.Context(), all)
	if n != 2 || !errors.Is(err, processor.ErrPoison) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
	w.await(2)
}

// An error of the broker is an outage unless the record is invalid.
func TestBrokerErrorsAreClassified(t *testing.T) {
	t.Parallel()
	for code, want := range map[*kerr.Error]error{
		kerr.TopicAuthorizationFailed: processor.ErrUnavailable, kerr.InvalidRecord: processor.ErrPoison, kerr.MessageTooLarge: processor.ErrPoison,
	} {
		w := newWorld(t)
		rejectProduce(w.cluster, code.Code)
		n, err := w.publisher(kafka.Config{}).Publish(t.Context(), outboxtest.Messages(3, 1, 3))
		if n != 0 || !errors.Is(err, want) || !errors.Is(err, code) {
			t.Errorf("%v: %d acknowledged, %v", code, n, err)
		}
		if n, err := w.publisher(kafka.Config{}).Publish(t.Context(), outboxtest.Messages(3, 1, 3)); n != 3 || err != nil {
			t.Errorf("after %v: %d acknowledged, %v", code, n, err)
		}
	}
}

// rejectProduce makes the broker respond with an error to the next records.
func rejectProduce(cluster *kfake.Cluster, code int16) {
	cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		asked := request.(*kmsg.ProduceRequest)
		response := asked.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range asked.Topics {
			answered := kmsg.NewProduceResponseTopic()
			answered.Topic, answered.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				refused := kmsg.NewProduceResponseTopicPartition()
				refused.Partition, refused.ErrorCode = partition.Partition, code
				answered.Partitions = append(answered.Partitions, refused)
			}
			response.Topics = append(response.Topics, answered)
		}
		return response, nil, true
	})
}

func TestSilentBrokerTimesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	defer close(release)
	w.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	p := w.publisher(kafka.Config{Timeout: 200 * time.Millisecond})
	begun := time.Now()
	n, err := p.Publish(t.Context(), outboxtest.Messages(3, 1, 3))
	if n != 0 || !errors.Is(err, processor.ErrUnavailable) || time.Since(begun) > 5*time.Second {
		t.Errorf("%d acknowledged after %v, %v", n, time.Since(begun), err)
	}
}

func TestInvalidConfigsAreRejected(t *testing.T) {
	t.Parallel()
	for _, config := range []kafka.Config{
		{}, {Brokers: []string{"a:1"}, Timeout: -1},
		{Brokers: []string{"a:1"}, Options: []kgo.Opt{kgo.DisableIdempotentWrite()}},
	} {
		if _, err := kafka.New(config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}
