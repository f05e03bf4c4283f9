package cli

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// asProgram is the environment variable that makes the test binary be the
// program, so that tests can run real processes of what they were built from.
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

// heedSignals gives the processes that tests start the signals that this one was
// started to ignore, as by nohup: a child ignores what its parent does, and does
// not ignore what its parent catches.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
