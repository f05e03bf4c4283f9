package connect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/database"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

// Backend is a database for the commands, with elections by sessions or by leases.
type Backend interface {
	tenure.Backend
	tenure.Listener
	Nodes(ctx context.Context) ([]tenure.NodeInfo, error)
	Holders(ctx context.Context, roles ...tenure.Role) ([]history.RoleStatus, error)
	History(ctx context.Context, query history.Query) ([]history.Term, error)
	Rekey(ctx context.Context, role tenure.Role) (before, after string, err error)
	Diagnose(ctx context.Context) []doctor.Finding
	SchemaVersion(ctx context.Context) (int, error)
	Close()
}

// Leases is a backend with a database to close. A backend for names only has none.
type Leases struct {
	*lease.Backend
	pool *sql.DB
}

// Close closes the backend and its database.
func (l Leases) Close() {
	l.Backend.Close()
	if l.pool != nil {
		_ = l.pool.Close() // all statements have ended
	}
}

// Open returns the backend. Sessions connect later; a SQLite file of leases is
// opened.
func (f *DatabaseFlags) Open(ctx context.Context, manualMigrations bool) (Backend, error) {
	target, err := f.Target()
	if err != nil {
		return nil, err
	}
	if !target.Leases() {
		return f.sessions(target, manualMigrations)
	}
	if f.local {
		fmt.Fprintf(os.Stderr, "tenure: --local: leases in %s, only for programs on this machine\n", printable.Text(target.String()))
	}
	pool, err := target.Open(ctx)
	if err != nil {
		return nil, err
	}
	b, err := f.leases(pool, target.Dialect(), manualMigrations)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return b, nil
}

// Offline returns a backend for names only. Without a named database, it is PostgreSQL.
func (f *DatabaseFlags) Offline() (Backend, error) {
	target, err := f.Target()
	switch {
	case err == nil && target.Leases():
		return f.leases(nil, target.Dialect(), false)
	case err != nil && f.Flags.Changed("dsn"):
		return nil, err
	}
	return postgres.New("host=localhost", postgres.Config{Schema: f.Schema, Prefix: f.Prefix})
}

func (f *DatabaseFlags) leases(pool *sql.DB, dialect lease.Dialect, manualMigrations bool) (Backend, error) {
	config := lease.Config{Prefix: f.Prefix + leasePrefix, ManualMigrations: manualMigrations}
	// Other databases have no schemas and refuse the flag.
	if dialect == lease.PostgreSQL || f.Flags.Changed("schema") {
		config.Schema = f.Schema
	}
	b, err := lease.NewBackend(pool, dialect, config)
	if err != nil {
		return nil, err
	}
	return Leases{b, pool}, nil
}

// leasePrefix distinguishes the tables of leases from the tables of sessions. Both may be
// in the same schema.
const leasePrefix = "lease_"

func (f *DatabaseFlags) sessions(target *database.Target, manualMigrations bool) (*postgres.Backend, error) {
	return target.Backend(postgres.Config{
		Schema: f.Schema, Prefix: f.Prefix, ManualMigrations: manualMigrations,
	})
}

// Target returns the database of the flags or the environment.
func (f *DatabaseFlags) Target() (*database.Target, error) {
	for _, name := range []string{"schema", "prefix"} {
		if f.Flags.Lookup(name).Value.String() == "" {
			return nil, console.Usage("--%s is empty", name)
		}
	}
	if f.local {
		if f.Flags.Changed("dsn") {
			return nil, console.Usage("--local and --dsn exclude each other")
		}
		if f.passwordCommand != "" {
			return nil, console.Usage("--local has no passwords: remove --password-command")
		}
		return database.Local()
	}
	dsn, err := f.ConnectionString()
	if err != nil {
		return nil, err
	}
	var login database.Password
	if f.passwordCommand != "" {
		login = database.PasswordCommand(f.passwordCommand)
	}
	return database.Parse(dsn, login)
}
