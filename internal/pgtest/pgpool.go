package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// pgpools says how Pgpool-II is ended by whoever finds it without an owner: its
// children end with it.
var pgpools = sandbox.Kind{Name: "pgpool", Accounts: []string{"nobody", "daemon"}, PIDFile: "pid", Signal: "INT"}

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

// Pgpool runs Pgpool-II in front of the server until the end of the test. It
// returns a function that turns a connection string of the server into one that
// goes through Pgpool-II.
func (s *Server) Pgpool(t testing.TB, options PgpoolOptions) (through func(dsn string) string) {
	t.Helper()
	program := "/usr/sbin/pgpool"
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("pgpool"); err != nil {
			t.Fatal("Pgpool-II is missing; on Debian and Ubuntu run: apt-get install pgpool2")
		}
	}
	box, err := sandbox.New(pgpools)
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
	administration, administrationErr := sandbox.FreePort()
	path := filepath.Join(place, "pgpool.conf")
	configuration := s.pgpoolConfiguration(options, place, port, administration)
	if err := errors.Join(placeErr, portErr, administrationErr, os.WriteFile(path, []byte(configuration), 0o600), box.Own(path)); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(place, "empty")
	if err := errors.Join(os.WriteFile(empty, nil, 0o600), box.Own(empty)); err != nil {
		t.Fatal(err)
	}

	log := filepath.Join(place, "log")
	process, err := box.Launch(log, program, "-n", "-D", "-f", path, "-a", empty, "-F", empty, "-k", empty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Signal(syscall.SIGINT) // its end shows whether it was sent
		<-process.Done()
	})
	through = func(dsn string) string {
		address, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		address.Host = net.JoinHostPort(sandbox.Host, strconv.Itoa(port))
		return address.String()
	}
	if err := awaitAnswer(through(s.DSN()), process); err != nil {
		t.Fatalf("Pgpool-II does not answer: %v\n%s", err, sandbox.LogTail(log))
	}
	return through
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
`, options.Mode, sandbox.Host, port, sandbox.Host, administration, place, place, place, filepath.Join(place, pgpools.PIDFile), place, onOff(options.LoadBalance), onOff(!options.NewConnections))
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
