package nats_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	outboxnats "github.com/exactly-one/tenure/adapters/nats"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/processor"
)

// restart starts the server again on its port, with an empty disk if there is none.
func (w *world) restart(options *server.Options) {
	w.Helper()
	s, err := server.NewServer(options)
	if err != nil {
		w.Fatal(err)
	}
	s.Start()
	w.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(20 * time.Second) {
		w.Fatal("the server does not listen")
	}
	w.server = s
}

// A server that starts again, also without its disk, gets the messages that follow, in
// order. What it had acknowledged and lost with its disk is not sent again.
func TestServerStartsAgain(t *testing.T) {
	for name, want := range map[string]string{"with its disk": "1:1 1:2 1:3 1:4 1:5 1:6", "with an empty disk": "1:4 1:5 1:6"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
			w := &world{TB: t}
			w.restart(options)
			options.Port = w.server.Addr().(*net.TCPAddr).Port
			var err error
			if w.conn, err = nats.Connect(w.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.conn.Close)
			if w.js, err = jetstream.New(w.conn); err != nil {
				t.Fatal(err)
			}
			config := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
			if w.stream, err = w.js.CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			p := w.publisher(outboxnats.Config{Timeout: time.Second})
			if n, err := p.Publish(t.Context(), outboxtest.Messages(1, 1, 3)); n != 3 || err != nil {
				t.Fatalf("%d acknowledged, %v", n, err)
			}
			lost := w.conn.StatusChanged(nats.RECONNECTING)
			w.server.Shutdown()
			w.server.WaitForShutdown()
			<-lost
			if n, err := p.Publish(t.Context(), outboxtest.Messages(1, 4, 6)); n != 0 || !errors.Is(err, processor.ErrUnavailable) {
				t.Errorf("without a server: %d acknowledged, %v", n, err)
			}
			if name == "with an empty disk" {
				if err := os.RemoveAll(options.StoreDir); err != nil {
					t.Fatal(err)
				}
			}
			back := w.conn.StatusChanged(nats.CONNECTED)
			w.restart(options)
			<-back
			if name == "with an empty disk" {
				if n, err := p.Publish(t.Context(), outboxtest.Messages(1, 4, 6)); n != 0 || !errors.Is(err, processor.ErrUnavailable) {
					t.Errorf("without a stream: %d acknowledged, %v", n, err)
				}
				if w.stream, err = w.js.CreateStream(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}
			next := 4
			for attempt := 0; next <= 6; attempt++ {
				n, err := p.Publish(t.Context(), outboxtest.Messages(1, next, 6))
				if next += n; err != nil && (attempt > 20 || !errors.Is(err, processor.ErrUnavailable)) {
					t.Fatalf("attempt %d: %d acknowledged, %v", attempt, n, err)
				}
			}
			w.expect(want)
		})
	}
}
