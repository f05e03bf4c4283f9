package features_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestPartsAreThoseOfMigrations: what an opening compares is what the migrations make.
func TestPartsAreThoseOfMigrations(t *testing.T) {
	for _, f := range []*schema.Feature{
		features.Changes, features.Events, features.Processors, features.Schedules, features.Samples, features.Rollups,
	} {
		t.Run(f.Name, func(t *testing.T) { postgrestest.CheckParts(t, f, f.Name+"/parts.tsv") })
	}
}
