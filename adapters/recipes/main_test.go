package recipes

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(riverVariable); dsn != "" {
		runRiver(dsn)
	}
	if given := os.Getenv(writerVariable); given != "" {
		runWriter(given)
	}
	pgtest.Main(m)
}
