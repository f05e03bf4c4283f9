//go:build linux

package agent_test

import (
	"os"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// patience is how long a test waits for what must happen sometime.
const patience = 60 * time.Second

// childVariable makes this test program a child; its value is the child's order.
const childVariable = "TENURE_AGENT_CHILD"

func TestMain(m *testing.M) {
	if order := os.Getenv(childVariable); order != "" {
		os.Exit(runChild(order))
	}
	pgtest.Main(m)
}
