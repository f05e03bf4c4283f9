package faultwire_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Two statements of one batch take one round trip, and those of two connections at the
// same time count once.
func TestFarServerCostsRoundTrips(t *testing.T) {
	t.Parallel()
	const roundTrip = 200 * time.Millisecond
	server := pgtest.Shared(t)
	proxy := startProxy(t, net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	proxy.Far(roundTrip)
	dsn, err := proxy.DSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Error(err)
			return nil
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}

	began := time.Now()
	second := make(chan *pgx.Conn, 1)
	go func() { second <- connect() }()
	conns := []*pgx.Conn{connect(), <-second}
	if took := time.Since(began); took < 2*roundTrip {
		t.Errorf("connecting took %v, want at least %v", took, 2*roundTrip)
	}
	if got := proxy.RoundTrips(); got != 1 {
		t.Errorf("two connections were opened: got %d round trips, want 1", got)
	}

	batch := new(pgx.Batch)
	batch.Queue("SELECT 1")
	batch.Queue("SELECT 2")
	ctx := context.Background()
	results := conns[0].SendBatch(ctx, batch)
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	relayed, err := proxy.Await(ctx, func(c *faultwire.Conn) bool { return c.PID() == conns[0].PgConn().PID() })
	if err != nil {
		t.Fatal(err)
	}
	if got := relayed.RoundTrips(); got != 3 { // opened, described, executed
		t.Errorf("the first connection: got %d round trips, want 3", got)
	}
}
