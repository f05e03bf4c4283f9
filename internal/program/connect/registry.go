package connect

import (
	"context"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// Only PostgreSQL with sessions has a registry of nodes.
var _ cluster.Store = (*postgres.Backend)(nil)

// Registry opens the database for a command on nodes.
func (f *DatabaseFlags) Registry(ctx context.Context) (*postgres.Backend, error) {
	if err := f.RequireRegistry("this command"); err != nil {
		return nil, err
	}
	opened, err := f.Open(ctx, false)
	if err != nil {
		return nil, err
	}
	return opened.(*postgres.Backend), nil
}

// RequireRegistry refuses a database without a registry of nodes, for a command that
// needs one.
func (f *DatabaseFlags) RequireRegistry(what string) error {
	target, err := f.Target()
	if err != nil {
		return err
	}
	if target.Leases() {
		return console.Usage("%s needs the registry of nodes, which only PostgreSQL without tenure_mode=lease has; this database uses leases: see tenure status", what)
	}
	return nil
}
