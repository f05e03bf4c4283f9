package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// asProgram is the environment variable that makes the test binary act as the
// program, so that tests can run the code under test as real processes.
const asProgram = "TENURE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asChild {
		os.Exit(childMain(os.Args[2:]))
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(Main())
	}
	heedSignals()
	pgtest.Main(withServer{m})
}

// withServer runs the tests with the server's program in the PATH.
type withServer struct{ tests *testing.M }

func (s withServer) Run() int {
	folder, err := buildServer()
	defer func() { _ = os.RemoveAll(folder) }()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.tests.Run()
}

// heedSignals makes the processes that tests start receive the signals that this
// process ignores, for example because of nohup: a child inherits ignored signals, but
// not caught ones.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
