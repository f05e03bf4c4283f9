package slots_test

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if node := os.Getenv(childVariable); node != "" {
		os.Exit(runChild(node))
	}
	pgtest.Main(m)
}
