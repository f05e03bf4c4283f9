package main

import (
	"context"

	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/postgres"
)

// A registry of nodes is kept by sessions on PostgreSQL only.
var _ cluster.Store = (*postgres.Backend)(nil)

// registry opens the database for a command on nodes.
func (f *databaseFlags) registry(ctx context.Context) (*postgres.Backend, error) {
	if err := f.requireRegistry("this command"); err != nil {
		return nil, err
	}
	opened, err := f.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return opened.(*postgres.Backend), nil
}

// requireRegistry refuses a database without a registry of nodes, which something
// needs.
func (f *databaseFlags) requireRegistry(what string) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	if target.Leases() {
		return usage("%s needs the registry of nodes, which only PostgreSQL without tenure_mode=lease keeps; here are leases: see tenure status", what)
	}
	return nil
}
