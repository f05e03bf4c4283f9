package postgrestest

import (
	"context"
	"crypto/sha256"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
)

// CheckParts compares the file with the parts of a feature with what its migrations make on
// a real server. With TENURE_WRITE_REFERENCE=1 it writes the file.
func CheckParts(t *testing.T, f *schema.Feature, file string) {
	t.Helper()
	i := New(t, f.Name)
	names := schema.Of(i.Backend).Names
	var found map[string][]schema.Part
	err := pgx.BeginFunc(t.Context(), i.Pool, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(t.Context(), "SET LOCAL search_path = pg_catalog"); err == nil {
			found, err = names.FindParts(context.WithoutCancel(t.Context()), tx, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := formatParts(found[f.Name])
	if os.Getenv("TENURE_WRITE_REFERENCE") == "1" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s, PostgreSQL %d: got\n%s\nwant what the migrations of %s make, which TENURE_WRITE_REFERENCE=1 writes:\n%s",
			file, pgtest.Shared(t).Major(), got, f.Name, want)
	}
}

// formatParts returns the file of a feature's parts: a line for each, in order. A function
// has the body of the migrations.
func formatParts(parts []schema.Part) string {
	lines := make([]string, len(parts))
	for i, p := range parts {
		if before, code, found := strings.Cut(p.Shape, " body "); p.Kind == schema.KindFunction && found && len(code) == 2*sha256.Size {
			p.Shape = before + schema.TemplateBody
		}
		lines[i] = strings.Join([]string{p.Kind, p.Object, p.Shape}, "\t") + "\n"
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
