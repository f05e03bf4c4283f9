package pgtest

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
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
		if stopped = s.flushes(t); !stopped {
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

// flushes reports whether commits can write the log: the stopped process may hold a
// lock that they need. Or it may be the one that was woken last to take a lock: the
// server then wakes no other that waits for it. So several connections commit at the
// same time, and write more than the buffer of the log.
func (s *Server) flushes(t testing.TB) bool {
	t.Helper()
	const writers, commits = 4, 25
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var group sync.WaitGroup
	var failed atomic.Bool
	for range writers {
		conn := s.Conn(t)
		group.Go(func() {
			for range commits {
				// A commit that only has a number waits for nothing.
				if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'flush', repeat('x', $1 + pg_size_bytes(current_setting('wal_buffers'))::int / $1))", writers*commits); err != nil {
					failed.Store(true)
					return
				}
			}
		})
	}
	group.Wait()
	return !failed.Load()
}

func signal(t testing.TB, pid int, s os.Signal) {
	t.Helper()
	if err := sandbox.Signal(pid, s); err != nil {
		t.Fatal(err)
	}
}
