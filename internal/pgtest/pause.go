package pgtest

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// PauseBackend stops a process of the server while it waits for an event, as
// pg_stat_activity names it, and returns a function that lets it continue, at the latest at
// the end of the test. A process that is stopped in something else can hold what all others
// need, and stop the whole server.
func PauseBackend(t testing.TB, dsn string, pid int32, event string) (resume func()) {
	t.Helper()
	signal := func(s syscall.Signal) {
		if err := sandbox.Signal(int(pid), s); err != nil {
			t.Fatal(err)
		}
	}
	resume = sync.OnceFunc(func() { _ = sandbox.Signal(int(pid), sandbox.ResumeSignal) })
	t.Cleanup(resume)
	for since := time.Now(); ; {
		if waitsFor(dsn, pid, event) {
			signal(sandbox.PauseSignal)
			if waitsFor(dsn, pid, event) {
				break
			}
			signal(sandbox.ResumeSignal)
		}
		if time.Since(since) > timeout {
			t.Fatalf("the process does not wait for %s", event)
		}
	}
	return resume
}

// waitsFor reports whether a process waits for an event. It also returns false if the
// server does not answer.
func waitsFor(dsn string, pid int32, event string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return false
	}
	defer func() { _ = conn.PgConn().Conn().Close() }()
	var waits bool
	err = conn.QueryRow(ctx, "SELECT coalesce(wait_event, '') = $2 FROM pg_stat_activity WHERE pid = $1", pid, event).Scan(&waits)
	return err == nil && waits
}
