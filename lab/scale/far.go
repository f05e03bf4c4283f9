package main

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/postgres"
)

// opening counts the round trips in sequence of an opening, beside those of a connection
// with one statement. Both include TCP's handshake.
func opening(ctx context.Context, server *pgserver.Server) ([]row, error) {
	local, err := postgres.New(server.DSN(), postgres.Config{})
	if err != nil {
		return nil, err
	}
	defer local.Close()
	if err := local.Migrate(ctx); err != nil {
		return nil, err
	}
	proxy, err := faultwire.Start(net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = proxy.Close() }() // the program ends soon
	proxy.Far(150 * time.Millisecond)
	dsn, err := proxy.DSN(server.DSN())
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "SELECT 1", pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, err
	}
	bare := proxy.RoundTrips()
	_ = conn.Close(ctx) // its round trips are counted
	far, err := postgres.New(dsn, postgres.Config{})
	if err != nil {
		return nil, err
	}
	defer far.Close()
	before := proxy.RoundTrips()
	node, err := tenure.Open(ctx, far, tenure.Config{Name: "far", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	trips := proxy.RoundTrips() - before
	const handshake = 1
	r := costs("opening: round trips", "", float64(trips+handshake), "a connection with one statement", float64(bare+handshake))
	return []row{r}, node.Close(ctx)
}
