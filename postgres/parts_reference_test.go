package postgres_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// TestPartsAreThoseOfMigrations: what an opening compares is what the migrations make.
func TestPartsAreThoseOfMigrations(t *testing.T) {
	postgrestest.CheckParts(t, postgres.CoreFeature, "migrations/parts.tsv")
}
