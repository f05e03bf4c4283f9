package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	outboxnats "github.com/exactly-one/tenure/adapters/nats"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// world is a server with a stream.
type world struct {
	testing.TB
	server *server.Server
	conn   *nats.Conn
	stream jetstream.Stream
	js     jetstream.JetStream

	known []outboxtest.Delivery
	read  uint64 // the sequence up to which the stream was read
}

func newWorld(t testing.TB) *world {
	t.Helper()
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not listen")
	}
	w := &world{TB: t, server: s}
	if w.conn, err = nats.Connect(s.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.conn.Close)
	if w.js, err = jetstream.New(w.conn); err != nil {
		t.Fatal(err)
	}
	w.stream, err = w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) publisher(config outboxnats.Config) *outboxnats.Publisher {
	w.Helper()
	p, err := outboxnats.New(w.conn, config)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// stored returns the messages of the stream. It keeps those that it has read before.
func (w *world) stored() []outboxtest.Delivery {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	info, err := w.stream.Info(ctx)
	if err != nil {
		w.Fatal(err)
	}
	for w.read < info.State.LastSeq {
		w.read++
		message, err := w.stream.GetMsg(ctx, w.read)
		if err != nil {
			w.Fatal(err)
		}
		if message.Header.Get(outbox.HeaderID) == "" {
			continue // from another writer
		}
		d, err := outboxtest.FromHeaders(message.Header.Get, "")
		if err != nil {
			w.Fatal(err)
		}
		w.known = append(w.known, d)
	}
	return slices.Clone(w.known)
}

// expect compares the stream with positions, each as "term:position".
func (w *world) expect(want string) {
	w.Helper()
	var got []string
	for _, d := range w.stored() {
		got = append(got, fmt.Sprintf("%d:%d", d.Term, d.Position.Position))
	}
	if text := strings.Join(got, " "); text != want {
		w.Errorf("the stream holds %q, want %q", text, want)
	}
}

func TestFaultsLoseNoMessage(t *testing.T) {
	for name, prefix := range map[string]string{"own stream": "", "shared stream": "shared "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			result := outboxtest.Run(t, outboxtest.Options{Target: prefix + w.server.ClientURL(), Deliveries: w.stored})
			if prefix == "" && result.Stale > 0 {
				t.Errorf("the stream contains %d messages of stale leaders", result.Stale)
			}
		})
	}
}

func TestMessagesAreStoredInOrder(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		w := newWorld(t)
		p := w.publisher(outboxnats.Config{SharedStream: shared})
		for from := 1; from < 6; from += 3 {
			if n, err := p.Publish(t.Context(), outboxtest.Messages(1, from, from+2)); n != 3 || err != nil {
				t.Fatalf("%d acknowledged, %v", n, err)
			}
		}
		w.expect("1:1 1:2 1:3 1:4 1:5 1:6")
		got, err := w.stream.GetMsg(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		want := outboxtest.Messages(1, 2, 2)[0]
		if got.Subject != "orders.order_placed" || string(got.Data) != "2" || got.Header.Get(outbox.HeaderID) != want.ID.String() ||
			got.Header.Get(outbox.HeaderRole) != "outbox" || got.Header.Get(nats.MsgIdHdr) != want.ID.String()+"/1" {
			t.Errorf("stored as %+v", got)
		}
	}
}

// Messages of a batch of which only a part was stored are stored once.
func TestRepeatedMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, to := range []int{3, 5, 5} {
		p := w.publisher(outboxnats.Config{}) // without the state of the others
		if n, err := p.Publish(t.Context(), outboxtest.Messages(1, 1, to)); n != to || err != nil {
			t.Fatalf("%d acknowledged, %v", n, err)
		}
	}
	w.expect("1:1 1:2 1:3 1:4 1:5")
}

// The messages of the next leader are stored although the stale leader has sent them, and
// from then on the stale leader is rejected.
func TestStaleLeaderIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stale, next := w.publisher(outboxnats.Config{}), w.publisher(outboxnats.Config{})
	publish := func(p *outboxnats.Publisher, all []outbox.Message, want int) error {
		t.Helper()
		n, err := p.Publish(t.Context(), all)
		if n != want {
			t.Errorf("%d acknowledged, want %d: %v", n, want, err)
		}
		return err
	}
	if err := publish(stale, outboxtest.Messages(1, 1, 3), 3); err != nil {
		t.Fatal(err)
	}
	if err := publish(next, outboxtest.Messages(2, 3, 4), 2); err != nil {
		t.Fatal(err)
	}
	if err := publish(stale, outboxtest.Messages(1, 4, 6), 0); !errors.Is(err, outboxnats.ErrForeignWriter) || !errors.Is(err, processor.ErrUnavailable) {
		t.Errorf("the stale leader got %v, want a rejection", err)
	}
	w.expect("1:1 1:2 1:3 2:3 2:4")
}

// A stale leader that was paused before the first message of its term is also rejected.
func TestStaleLeaderWithoutPositionIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.publisher(outboxnats.Config{})
	calls := 0
	stale := w.publisher(outboxnats.Config{Subject: func(outbox.Message) string {
		if calls++; calls == 2 { // it has read the stream and is about to send
			if n, err := next.Publish(t.Context(), outboxtest.Messages(2, 1, 2)); n != 2 || err != nil {
				t.Errorf("%d acknowledged, %v", n, err)
			}
		}
		return "orders.x"
	}})
	if n, err := stale.Publish(t.Context(), outboxtest.Messages(1, 1, 3)); n != 0 || !errors.Is(err, outboxnats.ErrForeignWriter) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
	w.expect("2:1 2:2")
}

func TestNoMessageOvertakesAFailedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.publisher(outboxnats.Config{})
	if _, err := p.Publish(t.Context(), outboxtest.Messages(1, 1, 2)); err != nil {
		t.Fatal(err)
	}
	elsewhere := w.publisher(outboxnats.Config{Timeout: time.Second, Subject: func(m outbox.Message) string {
		if m.Event.Position == 4 {
			return "nowhere"
		}
		return "orders.x"
	}})
	n, err := elsewhere.Publish(t.Context(), outboxtest.Messages(1, 3, 6))
	if n != 1 || !errors.Is(err, processor.ErrUnavailable) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
	w.expect("1:1 1:2 1:3")
	if n, err := p.Publish(t.Context(), outboxtest.Messages(1, 4, 6)); n != 0 || !errors.Is(err, outboxnats.ErrForeignWriter) {
		t.Errorf("after another writer: %d acknowledged, %v", n, err)
	}
	if n, err := p.Publish(t.Context(), outboxtest.Messages(1, 4, 6)); n != 3 || err != nil {
		t.Errorf("the next attempt: %d acknowledged, %v", n, err)
	}
	w.expect("1:1 1:2 1:3 1:4 1:5 1:6")
}

func TestOtherWritersAreDetected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.publisher(outboxnats.Config{SharedStream: true})
	for i := 1; i <= 3; i++ {
		if _, err := w.js.Publish(t.Context(), "orders.foreign", nil); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Publish(t.Context(), outboxtest.Messages(1, i, i)); n != 1 || err != nil {
			t.Fatalf("%d acknowledged, %v", n, err)
		}
	}
	w.expect("1:1 1:2 1:3")
}

func TestTooLargeMessageIsPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := outboxtest.Messages(1, 1, 3)
	all[1].Event.Data = json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
	n, err := w.publisher(outboxnats.Config{}).Publish(t.Context(), all)
	if n != 1 || !errors.Is(err, processor.ErrPoison) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
	w.expect("1:1")
}

// Without a server no message is accepted, and none is sent later.
func TestOutageIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.publisher(outboxnats.Config{})
	if err := p.Healthy(t.Context()); err != nil {
		t.Errorf("connected: %v", err)
	}
	lost := w.conn.StatusChanged(nats.RECONNECTING)
	w.server.Shutdown()
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection is still open")
	}
	if p.Healthy(t.Context()) == nil {
		t.Error("healthy without a connection")
	}
}

func TestCanceledContextPublishesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the term has ended")
	cancel(cause)
	if n, err := w.publisher(outboxnats.Config{}).Publish(ctx, outboxtest.Messages(1, 1, 3)); n != 0 || !errors.Is(err, cause) {
		t.Errorf("%d acknowledged, %v", n, err)
	}
	w.expect("")
}

func TestDefaultSubjectsAreValid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.publisher(outboxnats.Config{})
	odd := outboxtest.Messages(1, 1, 3)
	odd[0].Event.Type, odd[1].Event.Type, odd[2].Event.Type = "a b*c>", "order.placed", ".x..y."
	if n, err := p.Publish(t.Context(), odd); n != 3 || err != nil {
		t.Fatalf("%d acknowledged, %v", n, err)
	}
	for i, want := range []string{"orders.a_b_c_", "orders.order.placed", "orders._.x._.y._"} {
		if got, err := w.stream.GetMsg(t.Context(), uint64(i+1)); err != nil || got.Subject != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	w := newWorld(b)
	p := w.publisher(outboxnats.Config{})
	const batch = 100
	sent := 0
	for b.Loop() {
		if n, err := p.Publish(b.Context(), outboxtest.Messages(1, sent+1, sent+batch)); n != batch || err != nil {
			b.Fatal(n, err)
		}
		sent += batch
	}
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "events/s")
}

// A stream can limit its messages to less than the server does.
func TestMessageTooLargeForStreamIsPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage, MaxMsgSize: 1000}
	if _, err := w.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	for _, shared := range []bool{false, true} {
		all := outboxtest.Messages(1, 1, 3)
		all[1].Event.Data = json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)
		n, err := w.publisher(outboxnats.Config{SharedStream: shared}).Publish(t.Context(), all)
		if n != 1 || !errors.Is(err, processor.ErrPoison) {
			t.Errorf("shared stream: %v: %d acknowledged, %v", shared, n, err)
		}
	}
}

// The server does not acknowledge a publication without permission: the error names its
// refusal.
func TestMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	may := func(subjects ...string) *server.Permissions {
		return &server.Permissions{Publish: &server.SubjectPermission{Allow: subjects}}
	}
	reads := []string{"$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.*"}
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, Users: []*server.User{
		{Username: "owner"}, {Username: "reader", Permissions: may(reads...)}, {Username: "writer", Permissions: may("orders.>")},
	}}
	w := &world{TB: t}
	w.restart(options)
	connect := func(user string) *nats.Conn {
		conn, err := nats.Connect(w.server.ClientURL(), nats.UserInfo(user, ""))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	js, err := jetstream.New(connect("owner"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"reader": "orders.order_placed", "writer": "$JS.API.STREAM.NAMES"} {
		w.conn = connect(user)
		n, err := w.publisher(outboxnats.Config{Timeout: 200 * time.Millisecond}).Publish(t.Context(), outboxtest.Messages(1, 1, 3))
		if n != 0 || !errors.Is(err, processor.ErrUnavailable) || !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d acknowledged, %v; want an outage that names %s", user, n, err, want)
		}
	}
}
