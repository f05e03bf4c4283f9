package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// Behind a pooler session locks protect nothing, in silence. Tenure says so
// instead.
func TestBehindPgBouncer(t *testing.T) {
	for _, mode := range []string{"transaction", "statement", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			dsn := pgBouncer(t, server, mode)
			db, err := postgres.New(dsn, postgres.Config{Schema: server.Schema(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			begun := time.Now()
			node, err := tenure.Open(ctx, db, tenure.Config{Logger: logTo(t)})
			if node != nil {
				t.Error("a node was opened")
				_ = node.Close(ctx)
			}
			if !errors.Is(err, tenure.ErrPooled) || !errors.Is(err, tenure.ErrRefused) {
				t.Fatalf("%v; want it refused with ErrPooled", err)
			}
			if !strings.Contains(err.Error(), "Connect directly to PostgreSQL") {
				t.Errorf("%q does not say what to do", err)
			}
			if took := time.Since(begun); took > patience/2 {
				t.Errorf("a refusal was tried again for %v", took)
			}
		})
	}
}

// pgBouncer runs PgBouncer in front of a server until the end of the test and
// returns the connection string that goes through it.
func pgBouncer(t *testing.T, server *pgtest.Server, mode string) string {
	t.Helper()
	program := "/usr/sbin/pgbouncer"
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("pgbouncer"); err != nil {
			t.Fatal("PgBouncer is missing; on Debian and Ubuntu run: apt-get install pgbouncer")
		}
	}
	directory, err := os.MkdirTemp("", "tenure-bouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	port := freePort(t)
	configuration := fmt.Sprintf(`[databases]
postgres = host=%s port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
`, server.Host, server.Port, port, mode)
	path := filepath.Join(directory, "pgbouncer.ini")
	if err := errors.Join(os.Chmod(directory, 0o755), os.WriteFile(path, []byte(configuration), 0o644)); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(directory, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	command := exec.Command(program, path)
	command.Stdout, command.Stderr = output, output
	if os.Getuid() == 0 { // it refuses to run as root
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it reports the signal
	})
	dsn := "postgres://postgres@127.0.0.1:" + strconv.Itoa(port) + "/postgres?sslmode=disable"
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			err = conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return dsn
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(output.Name())
			t.Fatalf("PgBouncer does not answer: %v\n%s", err, log)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
