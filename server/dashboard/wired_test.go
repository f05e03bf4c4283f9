package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// wired returns a backend whose connections go through a network whose faults the test
// controls.
func (w *world) wired() (*faultwire.Proxy, *postgres.Backend) {
	w.Helper()
	wire, err := faultwire.Start(fmt.Sprintf("%s:%d", w.Server.Host, w.Server.Port))
	if err != nil {
		w.Fatal(err)
	}
	dsn, err := wire.DSN(w.Server.DSN())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = wire.Close() }) // a test may have closed it
	backend, err := postgres.New(dsn, postgres.Config{Schema: w.schema})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(backend.Close)
	return wire, backend
}

// wiredNode opens a node behind a wire that campaigns for roles.
func (w *world) wiredNode(name string, lease time.Duration, roles ...string) (*faultwire.Proxy, *tenure.Node) {
	w.Helper()
	wire, backend := w.wired()
	node, err := tenure.Open(w.Context(), backend, tenure.Config{Name: name, Lease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		wire.Resume()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = node.Close(ctx) // a test may have cut it off
	})
	postgrestest.Campaign(w, node, roles...)
	return wire, node
}
