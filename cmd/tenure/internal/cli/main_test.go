package cli

import (
	"os"
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
	pgtest.Main(m)
}
