package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// Relay is a program between clients and a server that a test can kill, stop and
// start again. It ends with the test.
type Relay struct {
	// DSN turns a connection string of the server into one that goes through the
	// program.
	DSN func(dsn string) string

	proxy   *proxy
	server  *Server
	args    []string
	process *sandbox.Process
}

// relays says how the sandbox ends a relay whose owner is gone.
var relays = sandbox.Kind{Name: "relay", Accounts: []string{"nobody", "daemon"}, PIDFile: "pid", Signal: "KILL"}

// HAProxy runs HAProxy in TCP mode in front of the server. It ends connections that
// carry nothing for 5 s.
func (s *Server) HAProxy(t testing.TB) *Relay {
	t.Helper()
	p := newProxy(t, relays, "HAProxy", "haproxy", "haproxy")
	path := p.write(t, "haproxy.cfg", fmt.Sprintf(`global
  maxconn 200
  master-worker
defaults
  mode tcp
  timeout connect 2s
  timeout client 5s
  timeout server 5s
listen postgresql
  bind %s:%d
  server one %s:%d
`, sandbox.Host, p.port, s.Host, s.Port))
	return s.relay(t, p, "-W", "-db", "-f", path)
}

// relay starts a program that writes no PID file.
func (s *Server) relay(t testing.TB, p *proxy, args ...string) *Relay {
	t.Helper()
	r := &Relay{proxy: p, server: s, args: args}
	r.Start(t)
	t.Cleanup(r.end)
	return r
}

// Start starts the program, also after [Relay.Kill], and waits until it serves.
func (r *Relay) Start(t testing.TB) {
	t.Helper()
	r.process = r.proxy.launch(t, r.args...)
	pid := []byte(strconv.Itoa(r.process.PID()) + "\n")
	if err := os.WriteFile(r.pidFile(), pid, 0o600); err != nil {
		t.Fatal(err)
	}
	r.DSN = r.proxy.through(t, r.server, r.process)
}

// Kill ends the program with SIGKILL.
func (r *Relay) Kill(t testing.TB) {
	t.Helper()
	killGroup(r.process.PID())
	if err := r.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.process.Done()
}

// Signal sends a signal to the program's processes.
func (r *Relay) Signal(signal syscall.Signal) error {
	var failed error
	for _, pid := range append([]int{r.process.PID()}, sandbox.Children(r.process.PID())...) {
		if err := sandbox.Signal(pid, signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Reload has the program read its configuration again.
func (r *Relay) Reload(t testing.TB) {
	t.Helper()
	if err := r.process.Signal(reloadSignal); err != nil {
		t.Fatal(err)
	}
	r.DSN = r.proxy.through(t, r.server, r.process)
}

func (r *Relay) end() {
	killGroup(r.process.PID())
	_ = r.Signal(syscall.SIGKILL) // its end shows whether it was sent
	<-r.process.Done()
	_ = os.Remove(r.pidFile()) // so does the sandbox
}

func (r *Relay) pidFile() string { return filepath.Join(r.proxy.place, relays.PIDFile) }
