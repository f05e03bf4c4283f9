// Package acceptance_test tests the whole system as its users run it: the engine on
// the PostgreSQL backend, on real servers, over a real wire that fails, and where
// that matters in separate processes that are killed, stopped and cut off. What can
// be shown with one session alone is tested in package postgres.
package acceptance_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// The durations that most tests run with. The lease is short, so that tests
// which wait for its end are fast, and long enough that a loaded machine does not
// end it by accident.
const (
	lease         = 3 * time.Second
	margin        = lease / 10
	checkInterval = 500 * time.Millisecond

	// slack is what a loaded machine may add to a bound of the protocol.
	slack = 2 * time.Second
	// patience is how long a test waits for what must happen sometime.
	patience = 30 * time.Second
)

// atOnce is how many tests run in parallel: they mostly wait.
const atOnce = "6"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		os.Exit(runChild(kind))
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce) // it parses
	}
	pgtest.Main(m)
}
