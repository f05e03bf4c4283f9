package features_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/schema"
)

// TestEveryMissingPartCanBeMended: whatever is missing, a repair has statements that make it.
func TestEveryMissingPartCanBeMended(t *testing.T) {
	names := schema.NewNames("public", "tenure_")
	for _, f := range schema.Registered() {
		for _, p := range f.Parts {
			if len(names.Mend(schema.Damage{Feature: f, Part: p})) == 0 {
				t.Errorf("%s: the %s %s has no statement that makes it", f.Name, p.Kind, p.Object)
			}
		}
	}
}
