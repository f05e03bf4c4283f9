package kubernetes_test

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		runChild(dsn)
		return
	}
	if given := os.Getenv(podVariable); given != "" {
		runPod(given)
	}
	pgtest.Main(m)
}
