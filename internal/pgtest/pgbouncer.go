package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// bouncers says how PgBouncer is ended by whoever finds it without an owner.
var bouncers = sandbox.Kind{Name: "bouncer", Accounts: []string{"nobody", "daemon"}, PIDFile: "pid", Signal: "KILL"}

// PgBouncer runs PgBouncer in front of the server until the end of the test, in
// a pool mode: "session", "transaction" or "statement". It returns a function
// that turns a connection string of the server into one that goes through
// PgBouncer, as the superuser whatever its user.
func (s *Server) PgBouncer(t testing.TB, mode string) (through func(dsn string) string) {
	t.Helper()
	program := "/usr/sbin/pgbouncer"
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("pgbouncer"); err != nil {
			t.Fatal("PgBouncer is missing; on Debian and Ubuntu run: apt-get install pgbouncer")
		}
	}
	box, err := sandbox.New(bouncers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	place, placeErr := box.Place()
	port, portErr := sandbox.FreePort()
	path := filepath.Join(place, "pgbouncer.ini")
	configuration := fmt.Sprintf(`[databases]
* = host=%s port=%d user=postgres
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 10
max_client_conn = 500
`, s.Host, s.Port, sandbox.Host, port, mode)
	if err := errors.Join(placeErr, portErr, os.WriteFile(path, []byte(configuration), 0o600), box.Own(path)); err != nil {
		t.Fatal(err)
	}

	log, pidPath := filepath.Join(place, "log"), filepath.Join(place, bouncers.PIDFile)
	process, err := box.Launch(log, program, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Signal(syscall.SIGKILL) // its end shows whether it was sent
		<-process.Done()
		if err := os.Remove(pidPath); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(pidPath, []byte(strconv.Itoa(process.PID())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	through = func(dsn string) string {
		address, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		address.Host = net.JoinHostPort(sandbox.Host, strconv.Itoa(port))
		return address.String()
	}
	if err := awaitAnswer(through(s.DSN()), process); err != nil {
		t.Fatalf("PgBouncer does not answer: %v\n%s", err, sandbox.LogTail(log))
	}
	return through
}

// awaitAnswer waits until a connection succeeds or the process has ended.
func awaitAnswer(dsn string, process *sandbox.Process) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(timeout); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			err = conn.Close(ctx)
		}
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-poll.C:
		case <-process.Done():
			return process.Failure()
		}
	}
}
