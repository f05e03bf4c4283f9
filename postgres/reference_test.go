package postgres_test

import (
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/postgres"
)

// The page has the privileges of a node, of an application that fences, of
// features and of compaction, as the backend prints them.
func TestReferenceHasTheGrants(t *testing.T) {
	backend, err := postgres.New("postgres://localhost/app", postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	text := "A node (`tenure migrate grants --user app`, `Backend.NodeGrants`):\n\n```sql\n" + backend.NodeGrants("app") + "```\n\n" +
		"An application that fences its transactions and runs no node (`--application --node-user node`, `Backend.ApplicationGrants`):\n\n```sql\n" +
		backend.ApplicationGrants("app", "node") + "```\n"
	if err := docpage.CheckReference("../docs/reference/database.md", text); err != nil {
		t.Error(err)
	}
}
