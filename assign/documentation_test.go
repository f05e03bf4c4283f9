package assign_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/postgres"
)

// The page shows what Setup and Grants return.
func TestDocumentedSQLMatchesSetupAndGrants(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/howto/assign-rows.md")
	if err != nil {
		t.Fatal(err)
	}
	backend, err := postgres.New("postgres://localhost/app", postgres.Config{Schema: "public"})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	config := assign.Config{Table: pgx.Identifier{"public", "jobs"}}
	setup, err := assign.Setup(backend, config)
	if err != nil {
		t.Fatal(err)
	}
	indexes, _, _ := strings.Cut(setup, "\n\n")
	grants, err := assign.Grants(backend, config, "app")
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{indexes, grants} {
		if !strings.Contains(string(page), "```sql\n"+strings.TrimSpace(shown)+"\n```") {
			t.Errorf("docs/howto/assign-rows.md does not show:\n%s", shown)
		}
	}
}
