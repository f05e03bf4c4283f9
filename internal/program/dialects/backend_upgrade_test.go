package dialects

import (
	"fmt"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease"
)

// A node upgrades the tables of version 1, whose history had no requesters, and keeps the
// terms in them.
//
// Set by hand: the tables, since no program of version 1 is at hand; they are what it
// printed for operators.
func TestBackendUpgradesTablesOfVersion1(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		db := k.connect(t, c.source)
		var old []string
		for line := range strings.Lines(newBackend(t, db, k.dialect, lease.Config{}).MigrationSQL()) {
			if !strings.Contains(line, "ended_by") {
				old = append(old, strings.Replace(line, "VALUES (1, 2, ", "VALUES (1, 1, ", 1))
			}
		}
		execute(t, db, strings.Split(strings.TrimSuffix(strings.Join(old, ""), ";\n"), ";\n\n")...)
		if version := value(t, db, "SELECT version FROM tenure_lease_news"); version != "1" {
			t.Fatalf("the old tables have version %s, want 1", version)
		}
		var children []*process
		for i := range 4 {
			children = append(children, c.launch(childMigrates, fmt.Sprintf("child-%d", i)))
		}
		for _, p := range children {
			if r := p.await("migrated"); r.Error != "" {
				t.Errorf("%s upgrades at the same time as others: %s", p.name, r.Error)
			}
		}
		a := c.join("a")
		election := a.campaign(backendRole)
		term := leads(t, election)
		if version := value(t, db, "SELECT version FROM tenure_lease_news"); version != "2" {
			t.Errorf("the tables have version %s, want 2", version)
		}
		request := tenure.Request{Kind: tenure.RequestStepDown, Role: backendRole, By: strings.Repeat("é", 300)}
		if err := a.backend.Request(soon(t), request); err != nil {
			t.Fatal(err)
		}
		_ = ended(t, term)
		leads(t, election)
		terms, err := a.backend.History(soon(t), history.Query{})
		if err != nil || len(terms) != 2 || terms[0].By != "" || terms[1].By != request.By {
			t.Errorf("history: %+v, %v; want two terms, the first ended by the requester", terms, err)
		}
	})
}
