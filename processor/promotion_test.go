package processor_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// deaf connects so that no notification is ever heard: whatever channel is
// listened to, it is one that nobody tells anything.
func deaf(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return deafConn{conn}, err
	}
	return pgx.ConnectConfig(ctx, config)
}

type deafConn struct{ net.Conn }

func (c deafConn) Write(data []byte) (int, error) {
	listen := []byte(`LISTEN "`)
	if i := bytes.Index(data, listen); i >= 0 {
		data = bytes.Clone(data)
		data[i+len(listen)] = '~'
	}
	return c.Conn.Write(data)
}

// A standby that is promoted begins to work, and goes on, although nobody hears
// of anything: neither of inserts nor of the vacancy.
func TestPromotionWithoutNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backend, err := postgres.New(pgtest.Shared(t).DSN(), postgres.Config{Schema: w.schema, Connect: deaf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	w.backend = backend
	w.store = eventstore.New(backend, eventstore.Config{Quiet: true})
	config := tenure.Config{Lease: 2 * time.Second, CheckInterval: 100 * time.Millisecond}
	work := processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 20 * time.Millisecond}
	first := w.group(w.node("first", config), work)
	w.append(1)
	w.await("the first event", func() bool { return len(w.numbers()) == 1 })
	w.group(w.node("second", config), work)
	first()
	for number := 2; number < 5; number++ {
		w.append(number)
		w.await("another event", func() bool { return len(w.numbers()) == number })
	}
	if s := w.show("counts"); s.NodeName != "second" {
		t.Errorf("%s led at last", s.NodeName)
	}
}
