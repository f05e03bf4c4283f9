package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/nearest"
	"github.com/exactly-one/tenure/postgres"
)

// workDatabase is what commands on leader-only work need of a database.
type workDatabase struct {
	*postgres.Backend

	pool *pgxpool.Pool
}

// Close closes all connections.
func (d *workDatabase) Close() {
	d.pool.Close()
	d.Backend.Close()
}

// work opens the database for a command that does statements of its own. A newer
// schema is refused.
func (f *databaseFlags) work(ctx context.Context) (*workDatabase, error) {
	if err := f.requireSessions("this command"); err != nil {
		return nil, err
	}
	target, err := f.target()
	if err != nil {
		return nil, err
	}
	opened, err := f.sessions(target, false)
	if err != nil {
		return nil, err
	}
	if err := opened.CheckSchema(ctx); err != nil {
		opened.Close()
		return nil, err
	}
	pool, err := target.Pool(ctx, "status")
	if err != nil {
		opened.Close()
		return nil, err
	}
	return &workDatabase{opened, pool}, nil
}

// SQLSTATE codes about which the user must do something.
const (
	undefinedTable        = "42P01"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
)

// explain says of an error of the database what to do about it, if the user must
// do something.
func (f *databaseFlags) explain(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case undefinedTable, invalidSchemaName:
		return fmt.Errorf("%w: there are no tables for schedules and processors in schema %q with prefix %q; a node creates them, or tenure migrate: %w",
			tenure.ErrSchema, f.schema, f.prefix, err)
	case insufficientPrivilege:
		return fmt.Errorf("%w: %w; tenure migrate grants --work prints what is needed", tenure.ErrPrivilege, err)
	}
	return err
}

// requireSessions refuses a database on which leaders hold leases, for something
// that needs sessions.
func (f *databaseFlags) requireSessions(what string) error {
	target, err := f.target()
	if err == nil && target.Leases() {
		err = usage("%s needs PostgreSQL without tenure_mode=lease; here are leases", what)
	}
	return err
}

// unknownName says which one may be meant where none has a name; err says so
// otherwise.
func unknownName(err error, what, name string, known []string) error {
	if meant := nearest.Of(name, known); meant != "" {
		return usage("no %s is called %q; did you mean %q?", what, name, meant)
	}
	return err
}
