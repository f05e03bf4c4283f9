package cron_test

import (
	"os"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) {
	if child := os.Getenv(childVariable); child != "" {
		os.Exit(runChild(child))
	}
	pgtest.Main(m)
}
