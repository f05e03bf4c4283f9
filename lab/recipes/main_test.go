package recipes

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if given := os.Getenv(riverVariable); given != "" {
		runRiver(given)
	}
	if given := os.Getenv(writerVariable); given != "" {
		runWriter(given)
	}
	pgtest.Main(m)
}
