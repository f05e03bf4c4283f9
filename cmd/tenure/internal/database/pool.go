package database

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres"
)

// Pool makes connections to the primary for statements beside sessions. It does
// not connect yet; every attempt is bounded, and a connection that nobody uses is
// closed after a while, as is one whose program leaves a transaction open. Its
// connections have the settings of every connection of Tenure, whatever the role or
// the connection string says. The caller closes the pool. purpose ends the
// application_name. Errors match tenure.ErrInvalidConfig.
func (t *Target) Pool(ctx context.Context, purpose string) (*pgxpool.Pool, error) {
	if t.Leases() {
		return nil, invalid("%s has no sessions", t.name)
	}
	config, err := pgxpool.ParseConfig(t.session)
	if err != nil {
		return nil, invalid("the connection string cannot be parsed")
	}
	connect := config.ConnConfig
	if connect.RuntimeParams["application_name"] == "" {
		connect.RuntimeParams["application_name"] = postgres.DefaultApplicationName + " " + purpose
	}
	config.BeforeConnect = t.dialer.PreparePool(connect, pgdial.Options{Use: pgdial.Pool})
	config.MaxConnIdleTime = idleTime
	return pgxpool.NewWithConfig(ctx, config)
}
