package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestTransfersAlternateBetweenTargets: a batch has roles for every target, and
// each target receives its roles in their order, since a target campaigns for the
// first ones only.
func TestTransfersAlternateBetweenTargets(t *testing.T) {
	t.Parallel()
	targets := map[byte]uuid.UUID{'a': uuid.New(), 'b': uuid.New(), 'c': uuid.New(), '-': uuid.Nil}
	for given, want := range map[string]string{
		"":                        "",
		"a1 a2 a3":                "a1 a2 a3",
		"a1 a2 a3 b1 b2 b3":       "a1 b1 a2 b2 a3 b3",
		"a1 a2 a3 a4 b1 c1 c2":    "a1 b1 c1 a2 c2 a3 a4",
		"b1 a1 b2 -1 a2 -2 b3 a3": "b1 a1 -1 b2 a2 -2 b3 a3",
	} {
		var transfers []transfer
		for _, name := range strings.Fields(given) {
			transfers = append(transfers, transfer{&candidacy{name: name}, targets[name[0]]})
		}
		var got []string
		for _, moved := range interleaveTargets(transfers) {
			got = append(got, moved.candidacy.name)
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %v; want %s", given, got, want)
		}
	}
}
