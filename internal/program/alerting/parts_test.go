package alerting

import (
	"testing"

	"github.com/exactly-one/tenure/internal/postgrestest"
)

// TestPartsAreThoseOfMigrations: what is compared before the first use is what the migrations
// make.
func TestPartsAreThoseOfMigrations(t *testing.T) {
	postgrestest.CheckParts(t, feature, "migrations/parts.tsv")
}
