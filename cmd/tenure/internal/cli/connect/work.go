package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/postgres"
)

// WorkDatabase is what commands on leader-only work need of a database.
type WorkDatabase struct {
	*postgres.Backend

	Pool *pgxpool.Pool
}

// Close closes all connections.
func (d *WorkDatabase) Close() {
	d.Pool.Close()
	d.Backend.Close()
}

// Work opens the database for a command that does statements of its own. A newer
// schema is refused.
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
	if err := opened.CheckSchema(ctx); err != nil {
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

// SQLSTATE codes about which the user must do something.
const (
	UndefinedTable        = "42P01"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
)

// Explain says of an error of the database what to do about it, if the user must
// do something.
func (f *DatabaseFlags) Explain(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case UndefinedTable, invalidSchemaName:
		return fmt.Errorf("%w: there are no tables for schedules and processors in schema %q with prefix %q; a node creates them, or tenure migrate: %w",
			dberr.ErrSchema, f.Schema, f.Prefix, err)
	case insufficientPrivilege:
		return fmt.Errorf("%w: %w; tenure migrate grants --work prints what is needed", dberr.ErrPrivilege, err)
	}
	return err
}

// RequireSessions refuses a database on which leaders hold leases, for something
// that needs sessions.
func (f *DatabaseFlags) RequireSessions(what string) error {
	target, err := f.Target()
	if err == nil && target.Leases() {
		err = console.Usage("%s needs PostgreSQL without tenure_mode=lease; here are leases", what)
	}
	return err
}
