package dialects

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// pgBouncer runs PgBouncer in transaction mode in front of a server until the test ends and
// returns its address.
func pgBouncer(t testing.TB, server *pgtest.Server) string {
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
* = host=%s port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 500
`, server.Host, server.Port, port)
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
		command.SysProcAttr = unprivilegedAttributes()
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it reports the signal
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	eventually(t, "PgBouncer listens", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return address
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
