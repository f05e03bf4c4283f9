package pgtest

import (
	"fmt"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// PgBouncer runs PgBouncer in front of the server, in a pool mode: "session",
// "transaction" or "statement". Whatever user a connection string names, the
// connection is the superuser's.
func (s *Server) PgBouncer(t testing.TB, mode string) *Relay {
	t.Helper()
	p := newProxy(t, relays, "PgBouncer", "pgbouncer", "pgbouncer")
	path := p.write(t, "pgbouncer.ini", fmt.Sprintf(`[databases]
* = host=%s port=%d user=postgres
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 10
max_client_conn = 500
`, s.Host, s.Port, sandbox.Host, p.port, mode))
	return s.relay(t, p, path)
}
