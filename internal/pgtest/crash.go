package pgtest

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// HoldLog stops the process that writes the log in the background, so that only commits
// that wait for the disk write it. crash kills that process, upon which the server ends
// all others, forgets what was not written and all locks, and starts again; it returns
// when the server accepts connections.
func (s *Server) HoldLog(t testing.TB) (crash func()) {
	t.Helper()
	var writer int
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for stopped := false; !stopped; <-tick.C {
		conn := s.Conn(t)
		err := conn.QueryRow(t.Context(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'").Scan(&writer)
		if errors.Is(err, pgx.ErrNoRows) { // the server has just started
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		signal(t, writer, sandbox.PauseSignal)
		if stopped = flushes(conn); !stopped {
			signal(t, writer, sandbox.ResumeSignal)
		}
	}
	conn := s.Conn(t)
	return func() {
		t.Helper()
		signal(t, writer, syscall.SIGKILL)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		for tick := time.Tick(time.Millisecond); conn.Ping(ctx) == nil; { // until the server has noticed
			<-tick
		}
		s.AwaitReady(t)
	}
}

// flushes reports whether commits can write the log: the stopped process may hold the
// lock that this takes, or the one for new pages in the buffer of the log, which are
// needed when the prepared ones are full. So more than the buffer is written.
func flushes(conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'flush', repeat('x', pg_size_bytes(current_setting('wal_buffers'))::int + 100000))")
	return err == nil
}

func signal(t testing.TB, pid int, s os.Signal) {
	t.Helper()
	if err := sandbox.Signal(pid, s); err != nil {
		t.Fatal(err)
	}
}
