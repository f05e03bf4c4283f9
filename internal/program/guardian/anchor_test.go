//go:build linux

package guardian

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The guardian holds the connection that holds the lock as long as it runs, and
// no longer.
func TestGuardianHoldsLockConnection(t *testing.T) {
	near, far, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	lock, err := connection(far)
	if err != nil {
		t.Fatal(err)
	}
	term := &anchoredTerm{newTerm(t, time.Hour), lock}
	r := &run{t: t, term: term.fakeTerm, folder: t.TempDir(), ended: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		defer close(r.ended)
		r.end, r.err = Run(term, Command{
			Path: "/bin/sleep", Args: []string{"sleep", "3600"}, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
			Grace: time.Second, Lead: time.Second, Refresh: time.Second,
			StopSignal: func() syscall.Signal { return syscall.SIGTERM },
			Started:    func(int) { close(started) }, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	select {
	case <-started:
	case <-r.ended:
		t.Fatalf("the command does not start: %v", r.err)
	}
	if err := lock.Close(); err != nil { // as when the supervisor dies
		t.Error(err)
	}
	if closed(t, near) {
		t.Error("invariant 4: the connection that keeps the lock is closed while the command runs")
	}
	term.lose()
	r.wait()
	if !closed(t, near) {
		t.Error("the connection that keeps the lock is open although nothing of the command lives")
	}
}

// closed reports, without waiting, whether the other end of a connection is
// closed.
func closed(t *testing.T, conn *net.UnixConn) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var failure error
	err = raw.Read(func(fd uintptr) bool {
		n, failure = unix.Read(int(fd), make([]byte, 1))
		return true
	})
	if err != nil || failure != nil && !errors.Is(failure, unix.EAGAIN) {
		t.Fatal(errors.Join(err, failure))
	}
	return failure == nil && n == 0
}

// anchoredTerm is a term with a connection that keeps its lock.
type anchoredTerm struct {
	*fakeTerm
	lock *net.UnixConn
}

func (s *anchoredTerm) LockConn() (syscall.RawConn, error) { return s.lock.SyscallConn() }
