package pgtest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// pgpools says how the sandbox ends a Pgpool-II whose owner is gone: its children
// end with it.
var pgpools = sandbox.Kind{Name: "pgpool", Accounts: relays.Accounts, PIDFile: relays.PIDFile, Signal: "INT", OwnIPC: true}

// PgpoolOptions say how Pgpool-II works.
type PgpoolOptions struct {
	// Mode is backend_clustering_mode: "raw", "streaming_replication",
	// "native_replication", "snapshot_isolation" or "logical_replication".
	Mode string
	// LoadBalance spreads reads over all servers.
	LoadBalance bool
	// NewConnections has every client served by a new connection to the server.
	// Otherwise Pgpool-II keeps those of clients that have gone. On one that it has
	// kept, it commits what in raw mode it leaves open on a new one.
	NewConnections bool
	// Others are further servers behind the same address, for example replicas.
	Others []*Server
}

// Pgpool runs Pgpool-II in front of the server.
func (s *Server) Pgpool(t testing.TB, options PgpoolOptions) *Relay {
	t.Helper()
	p := newProxy(t, pgpools, "Pgpool-II", "pgpool", "pgpool2")
	administration, err := sandbox.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	path := p.write(t, "pgpool.conf", s.pgpoolConfiguration(options, p.place, p.port, administration))
	empty := p.write(t, "empty", "")
	r := s.relay(t, p, "-n", "-D", "-f", path, "-a", empty, "-F", empty, "-k", empty)
	t.Cleanup(func() { // before it is killed: it removes its shared memory
		if r.process.Ended() {
			return
		}
		_ = errors.Join(r.Signal(sandbox.ResumeSignal), r.process.Signal(syscall.SIGINT)) // its end shows whether they were sent
		<-r.process.Done()
	})
	return r
}

func (s *Server) pgpoolConfiguration(options PgpoolOptions, place string, port, administration int) string {
	var text strings.Builder
	fmt.Fprintf(&text, `backend_clustering_mode = '%s'
listen_addresses = '%s'
port = %d
pcp_listen_addresses = '%s'
pcp_port = %d
socket_dir = '%s'
pcp_socket_dir = '%s'
wd_ipc_socket_dir = '%s'
pid_file_name = '%s'
logdir = '%s'
enable_pool_hba = off
pool_passwd = ''
num_init_children = 16
max_pool = 2
load_balance_mode = %s
sr_check_period = 1
sr_check_user = 'postgres'
sr_check_database = 'postgres'
memory_cache_enabled = off
connection_cache = %s
`, options.Mode, sandbox.Host, port, sandbox.Host, administration, place, place, place, filepath.Join(place, "pgpool.pid"), place, onOff(options.LoadBalance), onOff(!options.NewConnections))
	for i, server := range append([]*Server{s}, options.Others...) {
		weight := 1
		if i == 0 && options.LoadBalance && len(options.Others) > 0 {
			weight = 0 // all reads go to the others
		}
		fmt.Fprintf(&text, "backend_hostname%d = '%s'\nbackend_port%d = %d\nbackend_weight%d = %d\nbackend_flag%d = 'DISALLOW_TO_FAILOVER'\nbackend_data_directory%d = '%s'\n",
			i, server.Host, i, server.Port, i, weight, i, i, place)
	}
	return text.String()
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
