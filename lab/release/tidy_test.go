package main

import (
	"strings"
	"testing"
)

func TestTidyNeedsNoPublishedVersion(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	if err := run(t.Context(), &strings.Builder{}, []string{"tidy", "-root", root}); err != nil {
		t.Fatal(err)
	}
	// A package that the required version cannot have.
	put(t, root, "added/added.go", "package added\n")
	put(t, root, "adapters/kafka/user.go", "package kafka\n\nimport _ \""+library+"/added\"\n")
	if err := tidy(t.Context(), &strings.Builder{}, root, false); err != nil {
		t.Error(err)
	}
}

func TestTidyFindsAndRemovesARequirement(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	before := get(t, root, "adapters/kafka/go.mod")
	put(t, root, "adapters/kafka/go.mod", before+"\nrequire golang.org/x/mod v0.42.0\n")
	var out strings.Builder
	err := tidy(t.Context(), &out, root, false)
	if err == nil || !strings.Contains(err.Error(), "not tidy: adapters/kafka") {
		t.Errorf("error %v; want one that names adapters/kafka", err)
	}
	if want := "[adapters/kafka] go.mod: -require golang.org/x/mod v0.42.0"; !strings.Contains(out.String(), want) {
		t.Errorf("it prints:\n%swant:\n%s", out.String(), want)
	}
	if err := tidy(t.Context(), &out, root, true); err != nil {
		t.Fatal(err)
	}
	if after := get(t, root, "adapters/kafka/go.mod"); after != before {
		t.Errorf("go.mod:\n%swant:\n%s", after, before)
	}
}

func TestTidyKeepsOurChecksums(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	sums := library + " v0.0.9 h1:x=\n" + library + " v0.0.9/go.mod h1:y=\n"
	put(t, root, "adapters/kafka/go.sum", sums+"example.com/unused v1.0.0 h1:z=\n")
	if err := tidy(t.Context(), &strings.Builder{}, root, true); err != nil {
		t.Fatal(err)
	}
	if after := get(t, root, "adapters/kafka/go.sum"); after != sums {
		t.Errorf("go.sum:\n%swant:\n%s", after, sums)
	}
}
