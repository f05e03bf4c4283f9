package mariatest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// Database creates a database, dropped with the test, and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := sandbox.UniqueName(t.Name())
	s.Execute(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if s.answers() {
			s.Execute(t, "SET lock_wait_timeout = 10; DROP DATABASE "+name)
		}
	})
	return name
}

// DSN returns a connection string of root to a database, in the format of
// github.com/go-sql-driver/mysql and without parameters.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("root@tcp(%s)/%s", s.address(), database)
}

// URL returns a connection string of root to a database, as in
// mysql://root@127.0.0.1:3306/database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("mysql://root@%s/%s", s.address(), database)
}

// Execute runs statements as root, on a separate connection without a default
// database.
func (s *Server) Execute(t testing.TB, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := s.box.Execute(ctx, s.installed.client, "--no-defaults", "--user=root", "--protocol=tcp",
		"--host="+s.Host, "--port="+strconv.Itoa(s.Port), "--connect-timeout=10", "--execute="+statements)
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// answers reports whether the server runs and is not paused.
func (s *Server) answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running() && !s.paused
}

func (s *Server) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }
