//go:build unix

package postgres

import (
	"crypto/tls"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A duplicate of the session's connection keeps the lock after the node has
// closed its own, with and without TLS. When the duplicate ends, the lock is
// free.
func TestLockConnKeepsTheLock(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	server.EnableTLS(t)
	eventually(t, backendOn(t, server.DSN(), Config{}), "SELECT current_setting('ssl') = 'on'")
	for _, mode := range []string{"disable", "require"} {
		t.Run("sslmode="+mode, func(t *testing.T) {
			t.Parallel()
			b := backendOn(t, strings.Replace(server.DSN(), "sslmode=disable", "sslmode="+mode, 1), Config{Schema: server.Schema(t)})
			first, second := open(t, b), open(t, b)
			if _, encrypted := first.conn.PgConn().Conn().(*tls.Conn); encrypted != (mode == "require") {
				t.Fatalf("encrypted: %v", encrypted)
			}
			first.take("scheduler")
			anchor := duplicate(t, first.session)
			first.beat()
			first.Abort()
			second.drain()
			for range 5 {
				second.refused("scheduler")
				second.wait(20 * time.Millisecond)
				second.beat()
			}
			if err := syscall.Close(anchor); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			second.win("scheduler")
			if waited := time.Since(start); waited > timing().Lease/2 {
				t.Errorf("the role was free only %v after the anchor was let go", waited)
			}
		})
	}
}

// duplicate returns a duplicate of the descriptor of a session's connection.
func duplicate(t *testing.T, s *session) int {
	t.Helper()
	anchor, err := s.LockConn()
	if err != nil {
		t.Fatal(err)
	}
	var copied int
	var failure error
	err = anchor.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if copied, failure = syscall.Dup(int(fd)); failure == nil {
			syscall.CloseOnExec(copied)
		}
	})
	if err != nil || failure != nil {
		t.Fatal(err, failure)
	}
	return copied
}
