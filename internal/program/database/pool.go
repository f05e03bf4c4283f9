package database

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres"
)

// Pool creates a pool of connections to the primary for statements outside sessions.
// It does not connect yet. Every attempt has a time limit, and a connection is closed
// if it is idle for a while or if its program leaves a transaction open. Its connections
// have the settings of every connection of Tenure, whatever the database user or the
// connection string sets. The caller closes the pool. purpose ends the
// application_name. Errors match tenure.ErrInvalidConfig.
func (t *Target) Pool(ctx context.Context, purpose string) (*pgxpool.Pool, error) {
	if t.Leases() {
		return nil, invalid("%s has no sessions", t.name)
	}
	connect, err := pgdial.ParseConfig(t.session)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(connect.ConnString()) // as it was completed
	if err != nil {
		return nil, invalid("the connection string cannot be parsed: check its parameters that begin with pool_")
	}
	config.ConnConfig = connect
	if connect.RuntimeParams["application_name"] == "" {
		connect.RuntimeParams["application_name"] = postgres.DefaultApplicationName + " " + purpose
	}
	config.BeforeConnect = t.dialer.PreparePool(connect, pgdial.Credentials{DSN: t.session, Password: t.login}, pgdial.Options{Use: pgdial.Pool})
	config.MaxConnIdleTime = idleTime
	return pgxpool.NewWithConfig(ctx, config)
}
