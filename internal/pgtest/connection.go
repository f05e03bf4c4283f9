package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// Conn opens a connection of the superuser, closed with the test.
func (s *Server) Conn(t testing.TB) *pgx.Conn { t.Helper(); return Conn(t, s.DSN()) }

// Pool opens a pool of the superuser, closed with the test.
func (s *Server) Pool(t testing.TB) *pgxpool.Pool { t.Helper(); return Pool(t, s.DSN()) }

// Conn opens a connection, closed with the test.
func Conn(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx) // the test may have broken it
	})
	return conn
}

// Pool opens a pool, closed with the test. A test that keeps a connection of it
// fails.
func Pool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		select {
		case <-closed:
		case <-time.After(timeout):
			t.Errorf("%d connections were not given back to the pool", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// Schema returns a name for a schema, not used before, and creates nothing.
// A schema of that name is dropped when the test ends. A short run leaves that to the
// removal of the server, which saves time.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := sandbox.UniqueName(t.Name())
	t.Cleanup(func() {
		if s.PID() != 0 && !testing.Short() {
			// A session whose client is gone can still read the catalog: a deadlock ends its statement.
			s.execute(t, "SET lock_timeout = '10s'", "SET deadlock_timeout = '1min'", "DROP SCHEMA IF EXISTS "+quote(name)+" CASCADE")
		}
	})
	return name
}

// Database creates a database, dropped with the test, and returns the
// superuser's connection string to it.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := sandbox.UniqueName(t.Name())
	create := "CREATE DATABASE " + quote(name)
	if s.Major() >= 15 {
		create += " STRATEGY file_copy" // takes half the time for a template as small as this one
	}
	s.execute(t, create)
	t.Cleanup(func() {
		if s.PID() != 0 {
			s.execute(t, "DROP DATABASE "+quote(name)+" WITH (FORCE)")
		}
	})
	return s.DSNFor("postgres", name)
}

// execute runs statements on a separate connection.
func (s *Server) execute(t testing.TB, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// awaitStreaming waits until a replica of the server streams and, if that is
// wanted, commits wait for it.
func (s *Server) awaitStreaming(ctx context.Context, t testing.TB, name string, synchronous bool) {
	t.Helper()
	const query = `
		SELECT EXISTS (
			SELECT FROM pg_stat_replication
			WHERE application_name = $1 AND state = 'streaming' AND (sync_state = 'sync' OR NOT $2))`
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	Await(t, timeout, conn, query, name, synchronous)
}
