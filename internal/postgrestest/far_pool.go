package postgrestest

import (
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/faultwire"
)

// PoolThroughNetwork returns a pool with a separate network, and the network. The test can
// cut it off while the sessions of nodes live on.
func (i *Installation) PoolThroughNetwork() (*pgxpool.Pool, *faultwire.Proxy) {
	i.Helper()
	address, err := url.Parse(i.Server.DSN())
	if err != nil {
		i.Fatal(err)
	}
	network, err := faultwire.Start(address.Host)
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() { _ = network.Close() }) // the test may have closed it
	dsn, err := network.DSN(i.Server.DSN())
	if err != nil {
		i.Fatal(err)
	}
	pool, err := pgxpool.New(i.Context(), dsn)
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(pool.Close)
	return pool, network
}
