package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/kafka"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// broker is a Kafka cluster with a disk. It can start again, on the same ports.
type broker struct {
	testing.TB
	disk     string
	ports    []int
	cluster  *kfake.Cluster
	unheard  atomic.Bool // its responses to the publisher are lost with their connections
	slow     chan struct{}
	faults   *kfake.FaultHandle
	received []*kgo.Record // before it lost its disk
}

func newBroker(t testing.TB) *broker {
	t.Helper()
	b := &broker{TB: t, disk: t.TempDir()}
	b.start(kfake.NumBrokers(3))
	for _, address := range b.cluster.ListenAddrs() {
		var port int
		if _, err := fmt.Sscanf(address[strings.LastIndex(address, ":"):], ":%d", &port); err != nil {
			t.Fatal(err)
		}
		b.ports = append(b.ports, port)
	}
	t.Cleanup(func() { b.cluster.Close() })
	b.createTopic()
	return b
}

func (b *broker) start(options ...kfake.Opt) {
	b.Helper()
	listen := func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return listener{l, b}, err
	}
	var err error
	b.cluster, err = kfake.NewCluster(append(options, kfake.DataDir(b.disk), kfake.SyncWrites(), kfake.ListenFn(listen))...)
	if err != nil {
		b.Fatal(err)
	}
}

func (b *broker) startAgain() {
	b.Helper()
	b.start(kfake.NumBrokers(3), kfake.Ports(b.ports...))
}

func (b *broker) createTopic() {
	b.Helper()
	if err := b.cluster.CreateTopic("orders", 3, nil); err != nil {
		b.Fatal(err)
	}
}

// listener closes connections instead of answering if the broker is unheard.
type listener struct {
	net.Listener
	b *broker
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return unheard{conn, l.b}, err
}

type unheard struct {
	net.Conn
	b *broker
}

func (c unheard) Write(data []byte) (int, error) {
	if c.b.unheard.Load() {
		return 0, errors.Join(errors.New("cut off"), c.Close())
	}
	return c.Conn.Write(data)
}

// read returns all that the broker has stored, each partition in its order.
func (b *broker) read() []*kgo.Record {
	b.Helper()
	want := 0
	for _, partition := range b.cluster.PartitionInfos("orders") {
		want += int(partition.HighWatermark)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.ConsumeTopics("orders"), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), postgrestest.Patience)
	defer cancel()
	var all []*kgo.Record
	for len(all) < want {
		all = append(all, client.PollFetches(ctx).Records()...)
		if ctx.Err() != nil {
			b.Fatalf("%d records were read, want %d", len(all), want)
		}
	}
	return all
}

// answer makes the broker answer all that is produced with an error.
func (b *broker) answer(err *kerr.Error) {
	b.faults = b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, Count: -1})
}

// shop is an outbox whose events a Kafka cluster gets.
type shop struct {
	*postgrestest.Installation
	store *eventstore.Store
	admin *processor.Admin
	next  int
}

const streams = 4

func openShop(t testing.TB, b *broker) *shop {
	t.Helper()
	i := postgrestest.New(t, "processors", "events")
	s := &shop{Installation: i, store: eventstore.New(i.Backend, eventstore.Config{}), admin: processor.NewAdmin(i.Backend, i.Pool)}
	publisher, err := kafka.New(kafka.Config{Brokers: b.cluster.ListenAddrs(), KeyTag: "stream", Timeout: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(publisher.Close)
	processors, err := outbox.Processors(outbox.Topic{
		Name: "orders", Log: s.store.Log(), Publishers: []outbox.Publisher{publisher},
		Processing: processor.Config{BatchSize: 10, Retry: retry.FixedInterval{Interval: 20 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	node := i.Node("shop", tenure.Config{})
	group, err := processor.NewGroup(node, outbox.Role(), i.Pool, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := group.Add(processors[0]); err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, group.Run)
	return s
}

// order appends events. The data of each is its number, from 1 on.
func (s *shop) order(count int) {
	s.Helper()
	for range count {
		s.next++
		event := eventstore.NewEvent{Type: "placed", Tags: []string{fmt.Sprint("stream=", s.next%streams)}, Data: s.next}
		if err := s.store.Append(s.Context(), s.Pool, event); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *shop) status() processor.Status {
	s.Helper()
	status, err := s.admin.Show(s.Context(), "orders/kafka")
	if unknown := (*processor.UnknownError)(nil); err != nil && !errors.As(err, &unknown) {
		s.Fatal(err)
	}
	return status
}

// awaitPublished waits until all events are published, and no error is shown.
func (s *shop) awaitPublished(processed int) {
	s.Helper()
	s.Await(fmt.Sprint(processed, " events to be published"), func() bool {
		last := s.status()
		return last.Processed == int64(processed) && last.Errors == 0
	})
}

// publishAgain publishes all events again, as an operator can after a loss.
func (s *shop) publishAgain(b *broker, count int) {
	s.Helper()
	if err := s.admin.Rewind(s.Context(), "orders/kafka", processor.Cursor{}, "ann"); err != nil {
		s.Fatal(err)
	}
	s.awaitPublished(2 * count)
	stored := map[string]bool{}
	for _, record := range b.read() {
		stored[string(record.Value)] = true
	}
	if len(stored) != count {
		s.Errorf("%d events are stored after the rewind, want %d", len(stored), count)
	}
}

// check compares records with the events from one number on. Each event is there, and
// those of a stream came in order when they first came.
func check(t testing.TB, records []*kgo.Record, from, to int) {
	t.Helper()
	seen := map[int]bool{}
	last := map[int]int{}
	for _, record := range records {
		var number int
		if _, err := fmt.Sscan(string(record.Value), &number); err != nil {
			t.Fatal(err)
		}
		if seen[number] {
			continue
		}
		seen[number] = true
		stream := number % streams
		if before := last[stream]; before > number || number-max(before, from-1) > streams {
			t.Errorf("%d came after %d", number, before)
		}
		last[stream] = number
	}
	for number := from; number <= to; number++ {
		if !seen[number] {
			t.Errorf("%d is not there", number)
		}
	}
	if len(seen) != to-from+1 {
		t.Errorf("%d events are there, want those from %d to %d", len(seen), from, to)
	}
}

// TestOutboxOutlivesItsBroker: whatever happens to the brokers, the processor names the
// cause, loses no event, keeps the order, and continues when they are back.
func TestOutboxOutlivesItsBroker(t *testing.T) {
	for name, fault := range map[string]struct {
		begin, end func(*broker)
		want       string // part of the error that the processor shows
		lost       bool   // what was acknowledged
	}{
		"it starts again": {
			begin: func(b *broker) { b.cluster.Close() },
			want:  "connection refused",
			end:   (*broker).startAgain,
		},
		"it loses its disk": {
			begin: func(b *broker) {
				b.received = b.read()
				b.cluster.Close()
				if err := os.RemoveAll(b.disk); err != nil {
					b.Fatal(err)
				}
				b.startAgain()
			},
			want: "UNKNOWN_TOPIC_OR_PARTITION",
			end:  (*broker).createTopic,
			lost: true,
		},
		"its topic is deleted and created": {
			begin: func(b *broker) {
				b.received = b.read()
				if err := b.cluster.DeleteTopic("orders"); err != nil {
					b.Fatal(err)
				}
			},
			want: "UNKNOWN_TOPIC",
			end:  (*broker).createTopic,
			lost: true,
		},
		"it stores late": {
			begin: func(b *broker) {
				b.slow = make(chan struct{})
				b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
					b.cluster.KeepControl()
					b.cluster.SleepControl(func() { <-b.slow })
					return nil, nil, false
				})
			},
			want: "not acknowledged after 4",
			end:  func(b *broker) { close(b.slow) },
		},
		"it closes connections": {
			begin: func(b *broker) {
				b.slow = make(chan struct{})
				b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
					select {
					case <-b.slow:
						return nil, nil, false
					default:
						b.cluster.KeepControl()
						return nil, errors.New("closed"), true
					}
				})
			},
			want: "EOF",
			end:  func(b *broker) { close(b.slow) },
		},
		"one of three closes connections": {
			begin: func(b *broker) {
				b.slow = make(chan struct{})
				node := b.cluster.LeaderFor("orders", 0)
				b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
					select {
					case <-b.slow:
						return nil, nil, false
					default:
						b.cluster.KeepControl()
						return nil, errors.New("closed"), b.cluster.CurrentNode() == node
					}
				})
			},
			want: "EOF",
			end:  func(b *broker) { close(b.slow) },
		},
		"its responses are lost": {
			begin: func(b *broker) { b.unheard.Store(true) },
			want:  "broker closed the connection",
			end:   func(b *broker) { b.unheard.Store(false) },
		},
		"it stores and answers with an error": {
			begin: func(b *broker) { b.answer(kerr.NotEnoughReplicasAfterAppend) },
			want:  "not acknowledged after",
			end:   func(b *broker) { b.faults.Remove() },
		},
		"its disk fails": {
			begin: func(b *broker) { b.answer(kerr.KafkaStorageError) },
			want:  "KAFKA_STORAGE_ERROR",
			end:   func(b *broker) { b.faults.Remove() },
		},
		"it refuses": {
			begin: func(b *broker) { b.answer(kerr.TopicAuthorizationFailed) },
			want:  "TOPIC_AUTHORIZATION_FAILED",
			end:   func(b *broker) { b.faults.Remove() },
		},
		"it forgets the producer": {
			begin: func(b *broker) { b.answer(kerr.UnknownProducerID) },
			want:  "not acknowledged after",
			end:   func(b *broker) { b.faults.Remove() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			s := openShop(t, b)
			s.order(8)
			s.awaitPublished(8)
			fault.begin(b)
			s.order(30)
			var shown []string
			t.Cleanup(func() { t.Logf("shown: %q", shown) })
			s.Await("the cause to be shown", func() bool {
				status := s.status()
				if !slices.Contains(shown, status.LastError) {
					shown = append(shown, status.LastError)
				}
				return status.Errors > 0 && status.Status == processor.Active && strings.Contains(status.LastError, fault.want)
			})
			fault.end(b)
			s.order(8)
			s.awaitPublished(46)
			first := 1
			if fault.lost {
				check(t, b.received, 1, 8)
				first = 9
			}
			check(t, b.read(), first, 46)
			if fault.lost {
				s.publishAgain(b, 46)
			}
		})
	}
}
