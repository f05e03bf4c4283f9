package mariatest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// kind says how the sandbox ends servers whose owner is gone.
var kind = sandbox.Kind{
	Name:     "maria",
	Accounts: []string{"mysql", "nobody", "daemon"},
	PIDFile:  pidFile,
	Signal:   "KILL",
}

// The servers of this process, made when first asked for and ended by Main.
var (
	installed = sync.OnceValues(find)
	shared    = sync.OnceValues(func() (*Server, error) { return newServer(Options{}) })

	mu      sync.Mutex
	box     *sandbox.Sandbox
	servers []*Server
	skipped int // tests that could not run
)

// Runner is what [testing.M] is to a main function of tests.
type Runner interface{ Run() int }

// Main runs the tests of a package, ends the servers they used, and fails if a
// goroutine is left. It does not return.
func Main(m *testing.M) {
	sandbox.KeepTemplates()
	code := WithServers(m).Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "mariatest:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// WithServers makes the end of a run of tests end the servers that they used.
func WithServers(tests Runner) Runner { return run{tests} }

type run struct{ tests Runner }

func (r run) Run() int {
	code := r.tests.Run()
	if err := closeAll(); err != nil {
		fmt.Fprintln(os.Stderr, "mariatest:", err)
		code = max(code, 1)
	}
	if skipped > 0 {
		_, err := installed()
		fmt.Fprintf(os.Stderr, "WARNING: %d TESTS WERE SKIPPED: %v\n", skipped, err)
	}
	return code
}

// require ends a test that needs MariaDB on a machine without it: as a failure
// where tests must not be skipped.
func require(t testing.TB) {
	t.Helper()
	_, err := installed()
	switch {
	case err == nil:
	case errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "":
		mu.Lock()
		skipped++
		mu.Unlock()
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// openSandbox returns the sandbox of this process.
func openSandbox() (*sandbox.Sandbox, error) {
	mu.Lock()
	defer mu.Unlock()
	if box != nil {
		return box, nil
	}
	var err error
	box, err = sandbox.New(kind)
	return box, err
}

// add makes a server one of those that end with the tests.
func add(server *Server) {
	mu.Lock()
	defer mu.Unlock()
	servers = append(servers, server)
}

// closeAll ends the servers that still run, as the shared one does, and removes
// what they wrote.
func closeAll() error {
	mu.Lock()
	defer mu.Unlock()
	var stopped error
	for _, server := range servers {
		stopped = errors.Join(stopped, server.stop("kill"))
	}
	if box == nil {
		return stopped
	}
	return errors.Join(stopped, box.Close())
}
