package cli

import (
	"database/sql"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/program/console"
)

// TestRepairMendsTablesWithoutRows: a dump without rows leaves tables that no migration makes
// again. The doctor and a node name the command that does, and after it a node leads.
func TestRepairMendsTablesWithoutRows(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	on := place.with
	lead := func() result { return invoke(t, on("acquire", "--role", "billing", "--lease", "1s")...) }
	lead().want(t, console.ExitDone)
	names := map[string]string{}
	for _, table := range []string{"installation", "migrations", "nodes", "terms", "history", "node_history"} {
		names[table] = `"` + place.schema + `"."tenure_` + table + `"`
	}
	// Set by hand: a copy without rows has the same tables, and pg_dump is not on every machine.
	place.installation(t).Exec("TRUNCATE " + strings.Join([]string{names["installation"], names["migrations"], names["nodes"], names["terms"]}, ", "))
	got := lead()
	if got.code == console.ExitDone || !strings.Contains(got.stderr, "tenure migrate repair") {
		t.Errorf("a node: exit code %d, %s; want a refusal that names tenure migrate repair", got.code, got.stderr)
	}
	if got := invoke(t, on("doctor")...); !strings.Contains(got.stdout, "tenure migrate repair") {
		t.Errorf("the doctor: %s; want that it names tenure migrate repair", got.stdout)
	}
	if got := invoke(t, on("migrate")...); !strings.Contains(got.stderr, "tenure migrate repair") {
		t.Errorf("a migration: %s; want that it names tenure migrate repair", got.stderr)
	}
	if got := invoke(t, on("migrate", "repair")...); got.code != console.ExitUsage {
		t.Errorf("without a terminal: exit code %d, %s; want that it asks for --yes", got.code, got.stderr)
	}
	if got := invoke(t, on("migrate", "repair", "--dry-run")...).want(t, console.ExitDone); !strings.Contains(got.stdout, "INSERT INTO "+names["installation"]) {
		t.Errorf("--dry-run: %s; want the statement that writes the row of the installation", got.stdout)
	}
	if got := lead(); got.code == console.ExitDone {
		t.Error("--dry-run changed the tables: a node leads")
	}
	if got := invoke(t, on("migrate", "repair", "--yes", "-o", "json")...).want(t, console.ExitDone); !strings.Contains(got.stdout, `"dry_run":false`) {
		t.Errorf("--yes: %s; want what was done", got.stdout)
	}
	lead().want(t, console.ExitDone)
	if got := invoke(t, on("migrate", "repair", "--yes")...).want(t, console.ExitDone); !strings.Contains(got.stdout, "nothing is damaged") {
		t.Errorf("again: %s; want that nothing is damaged", got.stdout)
	}
}

// TestRepairRefusesLiveNodes: a repair under a leader could begin a second term.
func TestRepairRefusesLiveNodes(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	on := place.with
	node := launch(t, on("acquire", "--role", "billing", "--hold", "--name", "one", "-o", "json")...)
	node.await("acquired")
	got := invoke(t, on("migrate", "repair", "--yes")...).want(t, console.ExitDatabase)
	if !strings.Contains(got.stderr, `node "one" on `) {
		t.Errorf("while a node leads: %s; want its name", got.stderr)
	}
	node.signal(syscall.SIGTERM)
	node.exit()
}

// TestRepairMendsLeases: on SQLite too, the doctor and a node name the command, and after it
// a node leads.
func TestRepairMendsLeases(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	lead := func() result { return invoke(t, "acquire", "--role", "billing", "--lease", "1s", "--dsn", dsn) }
	lead().want(t, console.ExitDone)
	db, err := sql.Open("sqlite", strings.TrimPrefix(dsn, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Set by hand: another program damages the tables.
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE tenure_lease_seats DROP COLUMN server"); err != nil {
		t.Fatal(err)
	}
	const damage = "column tenure_lease_seats.server is missing: end all nodes and run tenure migrate repair"
	if got := lead(); got.code != console.ExitUsage || !strings.Contains(got.stderr, damage) {
		t.Errorf("a node: exit code %d, %s; want %q", got.code, got.stderr, damage)
	}
	if got := invoke(t, "doctor", "--dsn", dsn); !strings.Contains(got.stdout, damage) {
		t.Errorf("the doctor: %s; want %q", got.stdout, damage)
	}
	if got := invoke(t, "migrate", "repair", "--yes", "--dsn", dsn).want(t, console.ExitDone); !strings.Contains(got.stdout, "INSERT OR IGNORE INTO") {
		t.Errorf("--yes: %s; want the statements", got.stdout)
	}
	lead().want(t, console.ExitDone)
	if got := invoke(t, "migrate", "repair", "--yes", "--dsn", dsn).want(t, console.ExitDone); !strings.Contains(got.stdout, "nothing is damaged") {
		t.Errorf("again: %s; want that nothing is damaged", got.stdout)
	}
}
