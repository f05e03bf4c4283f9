package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgserver"
)

// timeout bounds each operation on a server.
const timeout = 60 * time.Second

// Options says what server to start.
type Options = pgserver.Options

// ReplicaOptions says what replica to make.
type ReplicaOptions = pgserver.ReplicaOptions

// Server is a PostgreSQL server for tests. Its methods may be called from
// several goroutines; those that take a test fail it immediately if they cannot do
// what they promise.
type Server struct {
	Host string
	Port int
	Dir  string // the data directory

	server *pgserver.Server
}

// Shared returns the server that all tests of the package share. It is started
// for the first who asks. Tests must not stop or reconfigure it.
func Shared(t testing.TB) *Server {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return wrap(t, server)
}

// Start starts a server for this test alone, ended with the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	box, err := openSandbox()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	server, err := box.Start(ctx, options)
	return own(t, server, err)
}

// Versions lists the major versions that this machine has servers of.
func Versions(t testing.TB) []string {
	t.Helper()
	if _, err := pgserver.Find(""); err != nil {
		t.Fatal(err)
	}
	return pgserver.Versions()
}

// Replica makes a streaming replica of the server, ended with the test, and
// waits until it streams.
func (s *Server) Replica(t testing.TB, options ReplicaOptions) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	server, err := s.server.Replica(ctx, options)
	replica := own(t, server, err)
	s.awaitStreaming(ctx, t, server.Name(), options.Synchronous)
	return replica
}

// own ends a server of a test with the test.
func own(t testing.TB, server *pgserver.Server, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := server.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	return wrap(t, server)
}

// wrap makes the log of a server part of the test's output if the test fails.
func wrap(t testing.TB, server *pgserver.Server) *Server {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the server on port %d ends with:\n%s", server.Port, server.Log())
		}
	})
	return &Server{Host: server.Host, Port: server.Port, Dir: server.Data, server: server}
}

// DSN returns the connection string of the superuser to the database postgres.
func (s *Server) DSN() string { return s.server.DSN() }

// DSNFor returns the connection string of a user to a database.
func (s *Server) DSNFor(user, database string) string { return s.server.DSNFor(user, database) }

// PID returns the postmaster's process id; 0 while the server is stopped.
func (s *Server) PID() int { return s.server.PID() }

// Log returns the end of the server's log.
func (s *Server) Log() string { return s.server.Log() }

// LogPath returns the file that the server logs to.
func (s *Server) LogPath() string { return s.server.LogPath() }

// Major returns the server's major version.
func (s *Server) Major() int { return s.server.Installation.Major }

// Stop stops the server in a mode of pg_ctl: "fast", "immediate" or "smart".
func (s *Server) Stop(t testing.TB, mode string) {
	t.Helper()
	s.do(t, func(ctx context.Context) error { return s.server.Stop(ctx, pgserver.StopMode(mode)) })
}

// Start starts the server again after Stop, on its data and its port.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.do(t, s.server.Start)
}

// Restart stops the server in a mode of pg_ctl and starts it again.
func (s *Server) Restart(t testing.TB, mode string) {
	t.Helper()
	s.do(t, func(ctx context.Context) error { return s.server.Restart(ctx, pgserver.StopMode(mode)) })
}

// AwaitReady waits until a server that is restarting accepts connections.
func (s *Server) AwaitReady(t testing.TB) {
	t.Helper()
	s.do(t, s.server.AwaitReady)
}

// Promote makes a replica a primary and waits until it is one.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.do(t, s.server.Promote)
}

// Configure changes settings and makes a running server read them, which takes
// effect shortly afterwards.
func (s *Server) Configure(t testing.TB, settings map[string]string) {
	t.Helper()
	if err := s.server.Configure(settings); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) do(t testing.TB, operation func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := operation(ctx); err != nil {
		t.Fatal(err)
	}
}
