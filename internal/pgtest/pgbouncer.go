package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

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
	p := newProxy(t, bouncers, "PgBouncer", "pgbouncer", "pgbouncer")
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
`, s.Host, s.Port, sandbox.Host, p.port, mode)
	path := p.write(t, "pgbouncer.ini", configuration)
	pidPath := filepath.Join(p.place, bouncers.PIDFile)
	process := p.launch(t, path)
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
	return p.through(t, s, process)
}
