package cli

import (
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
	pgtest.Main(m)
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
