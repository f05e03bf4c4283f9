package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// listed are rows of the reference: the privileges in the second cell suffice for the
// commands.
var listed = []struct {
	row        string
	privileges []string
	commands   []string
}{
	{
		"`status` | also `tenure_terms`, `tenure_nodes`, `tenure_node_history`, `tenure_installation`;",
		[]string{"SELECT ON {leaders}, {terms}, {nodes}, {node_history}, {installation}"},
		[]string{"status"},
	},
	{
		"`node list`, `node show` | `tenure_nodes`, `tenure_leaders`, `tenure_node_history` |",
		[]string{"SELECT ON {nodes}, {leaders}, {node_history}"},
		[]string{"node list", "node show one"},
	},
	{
		"`cluster status` | those of `node list`, and `tenure_spreads` |",
		[]string{"SELECT ON {nodes}, {leaders}, {node_history}, {spreads}"},
		[]string{"cluster status"},
	},
	{
		"`history` | `tenure_history`, `tenure_terms`, `tenure_nodes` |",
		[]string{"SELECT ON {history}, {terms}, {nodes}"},
		[]string{"history"},
	},
	{
		"`history --nodes` | `tenure_node_history` |",
		[]string{"SELECT ON {node_history}"},
		[]string{"history --nodes"},
	},
	{
		"`history --outages`, `--incidents` | those of `history` and `history --nodes` |",
		[]string{"SELECT ON {history}, {terms}, {nodes}, {node_history}"},
		[]string{"history --outages", "history --incidents"},
	},
	{
		"`role rekey` | `tenure_terms`, `tenure_leaders`, `tenure_installation`; `UPDATE` on `tenure_terms` |",
		[]string{"SELECT ON {terms}, {leaders}, {installation}", "UPDATE ON {terms}"},
		[]string{"role rekey spare=7 --yes"},
	},
	{
		"`step-down` | `tenure_leaders`, `tenure_nodes`, `tenure_requests`; `INSERT` on `tenure_requests` |",
		[]string{"SELECT ON {leaders}, {nodes}, {requests}", "INSERT ON {requests}"},
		[]string{"step-down --role billing"},
	},
	{
		"`step-down --to`, `node drain` | also `DELETE` on `tenure_requests` |",
		[]string{"SELECT ON {leaders}, {nodes}, {requests}", "INSERT, DELETE ON {requests}"},
		[]string{"step-down --role billing --to one", "node drain two --no-wait", "node undrain two"},
	},
}

// A user with only the privileges that the reference lists for a command can use it.
func TestListedPrivilegesSuffice(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/database.md")
	if err != nil {
		t.Fatal(err)
	}
	place := newPlace(t)
	place.pair(t)
	invoke(t, place.with("acquire", "--role", "spare")...).want(t, console.ExitDone)
	named := strings.NewReplacer("{", place.schema+".tenure_", "}", "")
	for i, test := range listed {
		if !strings.Contains(string(page), "\n| "+test.row) {
			t.Errorf("the page has no row %s", test.row)
		}
		user := fmt.Sprintf("u%d_%s", i, place.schema)
		run := place.user(t, user)
		run("GRANT USAGE ON SCHEMA " + place.schema + " TO " + user)
		for _, privilege := range append([]string{"SELECT ON {migrations}"}, test.privileges...) {
			run("GRANT " + named.Replace(privilege) + " TO " + user)
		}
		for _, command := range test.commands {
			args := append(strings.Fields(command), "--schema", place.schema, "--dsn", place.server.DSNFor(user, "postgres"))
			if got := invoke(t, args...); got.code != console.ExitDone {
				t.Errorf("%s: exit code %d: %s", command, got.code, got.stderr)
			}
		}
	}
}
