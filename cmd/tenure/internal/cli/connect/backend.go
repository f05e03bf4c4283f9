package connect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/database"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

// Backend is what the commands need of a database, be its elections sessions or
// leases.
type Backend interface {
	tenure.Backend
	tenure.Listener
	Nodes(ctx context.Context) ([]tenure.NodeInfo, error)
	Diagnose(ctx context.Context) []tenure.Finding
	SchemaVersion(ctx context.Context) (int, error)
	Migrate(ctx context.Context) error
	MigrateDown(ctx context.Context, version int) error
	MigrationSQL() string
	Close()
}

// Leases is a backend that closes its database. One for names only has none.
type Leases struct {
	*lease.Backend
	pool *sql.DB
}

// Close closes the backend and its database.
func (l Leases) Close() {
	l.Backend.Close()
	if l.pool != nil {
		_ = l.pool.Close() // every statement is over
	}
}

// Open makes the backend. Sessions do not connect yet; of leases on SQLite the
// file is opened.
func (f *DatabaseFlags) Open(ctx context.Context, manualMigrations bool) (Backend, error) {
	target, err := f.Target()
	if err != nil {
		return nil, err
	}
	if !target.Leases() {
		return f.sessions(target, manualMigrations)
	}
	if f.local {
		fmt.Fprintf(os.Stderr, "tenure: --local: leases in %s, for the programs of this machine only\n", printable.Text(target.String()))
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

// Offline makes a backend for what needs names only. If no database is named, it
// is PostgreSQL.
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
	if f.Flags.Changed("schema") {
		config.Schema = f.Schema
	}
	b, err := lease.NewBackend(pool, dialect, config)
	if err != nil {
		return nil, err
	}
	return Leases{b, pool}, nil
}

// leasePrefix tells the tables of leases from those of sessions, which may be in
// the same schema.
const leasePrefix = "lease_"

func (f *DatabaseFlags) sessions(target *database.Target, manualMigrations bool) (*postgres.Backend, error) {
	return postgres.New(target.SessionDSN(), postgres.Config{
		Schema: f.Schema, Prefix: f.Prefix, ManualMigrations: manualMigrations,
	})
}

// Target is the database that the flags or the environment name.
func (f *DatabaseFlags) Target() (*database.Target, error) {
	for _, name := range []string{"schema", "prefix"} {
		if f.Flags.Lookup(name).Value.String() == "" {
			return nil, console.Usage("--%s is empty", name)
		}
	}
	if f.local {
		if f.Flags.Changed("dsn") {
			return nil, console.Usage("--local and --dsn are two databases: give one of them")
		}
		return database.Local()
	}
	dsn, err := f.ConnectionString()
	if err != nil {
		return nil, err
	}
	return database.Parse(dsn)
}

// TermRecords is what leases know of terms. Who asked for their ends is not in it.
func (l Leases) TermRecords(ctx context.Context, query postgres.HistoryQuery, node string) ([]postgres.TermRecord, error) {
	found, err := l.History(ctx, lease.HistoryQuery{
		Role: query.Role, Node: node, Since: query.Since, Until: query.Until, Limit: query.Limit,
	})
	if err != nil {
		return nil, err
	}
	terms := make([]postgres.TermRecord, len(found))
	for i, t := range found {
		terms[i] = postgres.TermRecord{
			Role: t.Role, Term: t.Term, Node: t.Node, NodeName: t.NodeName, Began: t.Began, Ended: t.Ended, Reason: t.Reason, Vacant: t.Vacant,
		}
	}
	return terms, nil
}

// holders is what leases know of who holds roles: their leaders. It is empty if
// there are no tables.
func (l Leases) holders(ctx context.Context, roles []tenure.Role) ([]postgres.RoleStatus, error) {
	version, err := l.SchemaVersion(ctx)
	if err != nil || version == 0 && len(roles) == 0 {
		return nil, err
	}
	var names []string
	for _, role := range roles {
		names = append(names, role.Name())
	}
	leaders := map[string]*tenure.Leader{}
	if version > 0 {
		found, err := l.Leaders(ctx, names...)
		if err != nil {
			return nil, err
		}
		for i, leader := range found {
			leaders[leader.Role] = &found[i]
		}
		if len(roles) == 0 {
			if names, err = l.Roles(ctx); err != nil {
				return nil, err
			}
		}
	}
	holders := make([]postgres.RoleStatus, len(names))
	for i, name := range names {
		holders[i] = postgres.RoleStatus{Role: name, Leader: leaders[name]}
	}
	return holders, nil
}

// Holders reads who holds roles, or all roles if none is named.
func Holders(ctx context.Context, backend Backend, roles []tenure.Role) ([]postgres.RoleStatus, error) {
	switch b := backend.(type) {
	case *postgres.Backend:
		return b.Holders(ctx, roles...)
	case Leases:
		return b.holders(ctx, roles)
	default:
		panic(fmt.Sprintf("a backend of type %T", backend))
	}
}
