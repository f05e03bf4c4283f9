package cluster_test

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childSchema) != "" {
		os.Exit(child())
	}
	pgtest.Main(m)
}
