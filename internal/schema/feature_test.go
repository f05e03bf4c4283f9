package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/schema"
)

// TestFindPutsRequiredFeaturesFirst: tables that others refer to are created first
// and removed last, whatever the names of the features.
func TestFindPutsRequiredFeaturesFirst(t *testing.T) {
	last := schema.Register(schema.Feature{Name: "z-required"})
	middle := schema.Register(schema.Feature{Name: "m-required", Requires: []*schema.Feature{last}})
	schema.Register(schema.Feature{Name: "a-requires", Requires: []*schema.Feature{middle, last}})
	want := []string{"z-required", "m-required", "a-requires"}
	for _, names := range [][]string{{"a-requires"}, {"a-requires", "z-required"}, {schema.Core, "m-required", "a-requires"}} {
		found, err := schema.Find(names...)
		var got []string
		for _, f := range found {
			got = append(got, f.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("the features for %v: %v, %v; want %v", names, got, err, want)
		}
	}
	if found, err := schema.Find(schema.Core); len(found) > 0 || err != nil {
		t.Errorf("core: %v, %v; want none", found, err)
	}
	if found, err := schema.Find(schema.All); len(found) != len(schema.Registered()) || err != nil {
		t.Errorf("all: %d features, %v; want %d", len(found), err, len(schema.Registered()))
	}
	var unknown *schema.UnknownError
	if _, err := schema.Find("a-requires", "nothing"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "a-requires, ") {
		t.Errorf("an unknown name: %v; want the names of all features", err)
	}
}
