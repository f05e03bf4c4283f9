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

// deaf connects so that no notification is ever received: it replaces the channel in
// every LISTEN by one to which no session sends anything.
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

// A promoted standby starts and continues to work without any notification,
// neither of inserts nor of the vacancy.
func TestPromotedStandbyWorksWithoutNotifications(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t)
	backend, err := postgres.New(pgtest.Shared(t).DSN(), postgres.Config{Schema: w.Schema, Connect: deaf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	w.backend = backend
	w.store = eventstore.New(backend, eventstore.Config{NoNotify: true})
	config := tenure.Config{Lease: 2 * time.Second, CheckInterval: 100 * time.Millisecond}
	work := processor.Config{Name: "counts", Handle: w.fill, PollInterval: 10 * time.Millisecond, MaxPollInterval: 20 * time.Millisecond}
	first := w.group(w.Node("first", config), work)
	w.append(1)
	w.Await("the first event", func() bool { return len(w.numbers()) == 1 })
	w.group(w.Node("second", config), work)
	first()
	for number := 2; number < 5; number++ {
		w.append(number)
		w.Await("another event", func() bool { return len(w.numbers()) == number })
	}
	if s := w.show("counts"); s.NodeName != "second" {
		t.Errorf("%s led at last", s.NodeName)
	}
}

// An open transaction of a lost leader, wherever it was, does not delay the
// next leader.
func TestTransactionsOfEarlierTermsAreTerminated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mark int64
	work := processor.Config{Name: "counts", Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
		if mark == 0 {
			err := tx.QueryRow(ctx, `
				SELECT (classid::bigint << 32) | objid::bigint
				FROM pg_locks
				WHERE locktype = 'advisory' AND mode = 'ShareLock' AND pid = pg_backend_pid()`).Scan(&mark)
			if err != nil {
				return err
			}
		}
		return w.fill(ctx, tx, batch)
	}}
	w.append(1)
	stop := w.group(w.Node("first", tenure.Config{}), work)
	w.Await("the first event", func() bool { return len(w.numbers()) == 1 })
	stop()

	left, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = left.Rollback(t.Context()) }() // it was ended
	_, err = left.Exec(t.Context(), "SELECT pg_advisory_xact_lock_shared($1)", mark)
	if err == nil {
		_, err = left.Exec(t.Context(), "UPDATE "+pgx.Identifier{w.Schema, "tenure_processors"}.Sanitize()+" SET processed = 7")
	}
	if err != nil {
		t.Fatal(err)
	}
	w.append(2)
	begun := time.Now()
	w.group(w.Node("second", tenure.Config{}), work)
	w.Await("the second event, which a transaction that was left open delays", func() bool { return len(w.numbers()) == 2 })
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := w.show("counts").Processed; n != 2 {
		t.Errorf("%d events were counted", n)
	}
}
