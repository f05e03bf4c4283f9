package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// WorkDatabase is the database of commands on schedules and processors.
type WorkDatabase struct {
	*postgres.Backend

	Pool *pgxpool.Pool
}

// Close closes all connections.
func (d *WorkDatabase) Close() {
	d.Pool.Close()
	d.Backend.Close()
}

// Work opens the database for a command with its own statements. It rejects a newer
// schema.
func (f *DatabaseFlags) Work(ctx context.Context) (*WorkDatabase, error) {
	if err := f.RequireSessions("this command"); err != nil {
		return nil, err
	}
	target, err := f.Target()
	if err != nil {
		return nil, err
	}
	opened, err := f.sessions(target, false)
	if err != nil {
		return nil, err
	}
	if err := schema.Of(opened).CheckCore(ctx); err != nil {
		opened.Close()
		return nil, err
	}
	pool, err := target.Pool(ctx, "status")
	if err != nil {
		opened.Close()
		return nil, err
	}
	return &WorkDatabase{opened, pool}, nil
}

// The SQLSTATEs on which the user must act.
const (
	UndefinedTable        = "42P01"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
)

// Explain adds the remedy to a database error, if the user must act.
func (f *DatabaseFlags) Explain(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case UndefinedTable, invalidSchemaName:
		return fmt.Errorf("%w: schema %q has no tables for schedules and processors with prefix %q; a node or tenure migrate creates them: %w",
			dberr.ErrSchema, f.Schema, f.Prefix, err)
	case insufficientPrivilege:
		return fmt.Errorf("%w: %w; tenure migrate grants --work prints what is needed", dberr.ErrPrivilege, err)
	}
	return err
}

// RequireSessions rejects a database with leases for something that needs sessions.
func (f *DatabaseFlags) RequireSessions(what string) error {
	target, err := f.Target()
	if err == nil && target.Leases() {
		err = console.Usage("%s needs PostgreSQL without tenure_mode=lease; this database uses leases", what)
	}
	return err
}
