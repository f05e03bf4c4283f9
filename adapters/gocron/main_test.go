package gocron_test

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if given := os.Getenv(childVariable); given != "" {
		runChild(given)
	}
	pgtest.Main(m)
}
