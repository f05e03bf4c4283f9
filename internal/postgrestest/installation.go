// Package postgrestest gives tests an installation on PostgreSQL: a separate
// schema on the server that the tests of a package share, backends, and the nodes on
// it. All of it ends with the test.
package postgrestest

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/postgres"
)

// Installation is a schema and the nodes on it.
type Installation struct {
	testing.TB
	Server  *pgtest.Server
	Schema  string
	Pool    *pgxpool.Pool     // of the superuser
	Backend *postgres.Backend // as one process has it
}

// New returns an installation on the shared server, with the tables for elections
// and for features.
func New(t testing.TB, features ...string) *Installation {
	t.Helper()
	i := Unmigrated(t)
	i.Migrate(features...)
	return i
}

// Unmigrated is New without tables: the first node creates them.
func Unmigrated(t testing.TB) *Installation {
	t.Helper()
	server := pgtest.Shared(t)
	return On(t, server, server.Schema(t))
}

// On returns the installation in a schema of a server, which may have tables.
func On(t testing.TB, server *pgtest.Server, schema string) *Installation {
	t.Helper()
	i := &Installation{TB: t, Server: server, Schema: schema, Pool: server.Pool(t)}
	i.Backend = i.NewBackend()
	return i
}

// Migrate creates the tables for elections and for features.
func (i *Installation) Migrate(features ...string) {
	i.Helper()
	if err := i.Backend.Migrate(i.Context(), features...); err != nil {
		i.Fatal(err)
	}
}

// NewBackend returns a backend that shares nothing with others, as in a separate process.
func (i *Installation) NewBackend(changes ...func(*postgres.Config)) *postgres.Backend {
	i.Helper()
	config := postgres.Config{Schema: i.Schema}
	for _, change := range changes {
		change(&config)
	}
	backend, err := postgres.New(i.Server.DSN(), config)
	if err != nil {
		i.Fatal(err)
	}
	i.Cleanup(backend.Close)
	return backend
}

// Exec runs a statement with the names of [pgtest.SQL].
func (i *Installation) Exec(sql string, args ...any) {
	i.Helper()
	if _, err := i.Pool.Exec(i.Context(), pgtest.SQL(i.Backend, sql), args...); err != nil {
		i.Fatalf("%s: %v", sql, err)
	}
}

// Value reads one value with a statement with the names of [pgtest.SQL].
func Value[T any](i *Installation, sql string, args ...any) T {
	i.Helper()
	rows, err := i.Pool.Query(i.Context(), pgtest.SQL(i.Backend, sql), args...)
	if err != nil {
		i.Fatalf("%s: %v", sql, err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		i.Fatalf("%s: %v", sql, err)
	}
	return value
}

// Await waits until a condition holds.
func (i *Installation) Await(what string, condition func() bool) {
	i.Helper()
	testkit.Await(i, what, condition)
}

// AwaitLeader waits until a node leads a role.
func (i *Installation) AwaitLeader(role string, node uuid.UUID) {
	i.Helper()
	i.Await(role+" is led by "+node.String(), func() bool {
		leaders, err := i.Backend.Leaders(i.Context(), role)
		if err != nil {
			i.Fatal(err)
		}
		return len(leaders) == 1 && leaders[0].NodeID == node
	})
}

// AwaitWatched waits until another node waits for the death of each of these
// nodes, as it does some time after the last one joined.
func (i *Installation) AwaitWatched(nodes ...uuid.UUID) {
	i.Helper()
	i.Await("all nodes are watched", func() bool {
		return len(nodes) == Value[int](i, `
SELECT count(*)
FROM {nodes} n
WHERE n.id = ANY ($1) AND EXISTS (
	SELECT FROM pg_locks l JOIN pg_locks other USING (locktype, database, classid, objid, objsubid)
	WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.objid = n.incarnation::oid
		AND l.pid = n.pid AND l.granted AND NOT other.granted)`, nodes)
	})
}
