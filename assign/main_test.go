package assign_test

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(childVariable); told != "" {
		os.Exit(runChild(told))
	}
	pgtest.Main(m)
}
