package pgtest

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// HoldLog stops the process that writes the log in the background, so that only commits
// that wait for the disk write it. crash kills that process, upon which the server ends
// all others, forgets what was not written and all locks, and starts again; it returns
// when the server accepts connections.
func (s *Server) HoldLog(t testing.TB) (crash func()) {
	t.Helper()
	conn := s.Conn(t)
	var writer int
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := conn.QueryRow(ctx, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'").Scan(&writer); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Signal(writer, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := sandbox.Signal(writer, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		for tick := time.Tick(time.Millisecond); conn.Ping(ctx) == nil; { // until the server has noticed
			<-tick
		}
		s.AwaitReady(t)
	}
}
