package cli

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

var (
	coreTables = []string{
		"history", "installation", "migrations", "node_history", "nodes", "requests", "server", "spreads", "terms",
	}
	scheduleTables  = []string{"changes", "runs", "schedules"}
	processorTables = []string{"dead_letters", "processor_lags", "processors"}
	allFeatures     = []string{"core", "alerts", "changes", "events", "processors", "rollups", "samples", "schedules"}
)

// tables returns the tables of the place without their prefix, in order.
func (p place) tables(t *testing.T) []string {
	t.Helper()
	var tables []string
	err := p.server.Conn(t).QueryRow(t.Context(), `
SELECT coalesce(array_agg(substr(relname, length('tenure_') + 1) ORDER BY relname), '{}')
FROM pg_class
WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`, p.schema).Scan(&tables)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func wantTables(t *testing.T, p place, when string, parts ...[]string) {
	t.Helper()
	want := slices.Sorted(slices.Values(slices.Concat(parts...)))
	if got := p.tables(t); !slices.Equal(got, want) {
		t.Errorf("%s: tables %v; want %v", when, got, want)
	}
}

// On an empty database, a node that only elects creates the tables of elections
// and of the cluster, and schedules add theirs.
func TestRunCreatesCoreTablesOnly(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	if len(coreTables) > 9 {
		t.Errorf("%d core tables; want at most 9", len(coreTables))
	}
	place := newPlace(t)
	elects := place.run(t, "--role", "x")
	elects.await("acquired")
	wantTables(t, place, "tenure run", coreTables)

	// Commands that read the tables of a feature find nothing, and create nothing.
	for _, args := range [][]string{
		{"cron", "list"}, {"processor", "list"}, {"processor", "lag"}, {"alerts", "list"}, {"audit"},
		{"history"}, {"history", "--days", "roles"}, {"history", "--days", "schedules"}, {"history", "--days", "metrics"}, {"migrate", "status"},
	} {
		invoke(t, place.with(args...)...).want(t, console.ExitDone)
	}
	for _, args := range [][]string{{"cron", "history"}, {"cron", "pause"}, {"cron", "trigger"}, {"processor", "show"}, {"processor", "pause"}, {"processor", "retry"}} {
		got := invoke(t, place.with(append(args, "nightly")...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, "is registered yet") {
			t.Errorf("%v: %s", args, got.stderr)
		}
	}
	wantTables(t, place, "after reading", coreTables)

	schedules := cronNode(t, place.schedules(t, `name = "nightly"`+"\n"+never+"\n"+`command = ["true"]`), "a")
	eventually(t, "the schedule to be known", func() bool { return len(place.schedulesOf(t)) == 1 })
	wantTables(t, place, "tenure cron run", coreTables, scheduleTables)
	for _, p := range []*process{schedules, elects} {
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != console.ExitDone {
			t.Errorf("exit code %d:\n%s", code, p.log())
		}
	}
}

// The commands on the schema handle each feature separately.
func TestMigrateHandlesEachFeature(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	status := func(want map[string]int) {
		t.Helper()
		var record database.StatusRecord
		invoke(t, place.with("migrate", "status", "-o", "json")...).want(t, console.ExitDone).decode(t, &record)
		var names []string
		for _, f := range record.Features {
			names = append(names, f.Feature)
			if f.Version != want[f.Feature] || f.Newest != 1 {
				t.Errorf("%+v; want version %d", f, want[f.Feature])
			}
		}
		slices.Sort(names[1:])
		if !slices.Equal(names, allFeatures) {
			t.Errorf("features %v; want %v", names, allFeatures)
		}
	}
	status(nil)
	got := invoke(t, place.with("migrate", "up", "--feature", "schedules")...).want(t, console.ExitDone)
	if want := fmt.Sprintf("schema %s, prefix tenure_: version 1, changes version 1, schedules version 1\n", place.schema); got.stdout != want {
		t.Errorf("%q; want %q", got.stdout, want)
	}
	status(map[string]int{"core": 1, "changes": 1, "schedules": 1})
	wantTables(t, place, "up --feature schedules", coreTables, scheduleTables)

	// The script of a feature does not change existing tables.
	sql := invoke(t, "migrate", "print", "--schema", place.schema, "--feature", "processors").want(t, console.ExitDone).stdout
	if _, err := place.server.Conn(t).Exec(t.Context(), strings.Repeat(sql, 2)); err != nil {
		t.Fatalf("applying the script twice: %v in\n%s", err, sql)
	}
	status(map[string]int{"core": 1, "changes": 1, "schedules": 1, "processors": 1})
	wantTables(t, place, "print --feature processors", coreTables, scheduleTables, processorTables)

	// The grants are those for the features in use.
	grants := invoke(t, place.with("migrate", "grants", "--user", "app", "--work", "--compaction")...).want(t, console.ExitDone).stdout
	for _, table := range []string{"tenure_runs", "tenure_dead_letters", "tenure_changes"} {
		if !strings.Contains(grants, table) {
			t.Errorf("no privilege on %s in\n%s", table, grants)
		}
	}
	for _, table := range []string{"tenure_samples", "tenure_alert_rules", "tenure_term_days", "tenure_events"} {
		if strings.Contains(grants, table) {
			t.Errorf("a privilege on %s, which is not used, in\n%s", table, grants)
		}
		asked := invoke(t, "migrate", "grants", "--user", "app", "--work", "--feature", "samples", "--feature", "alerts,rollups,events").want(t, console.ExitDone)
		if !strings.Contains(asked.stdout, table) {
			t.Errorf("no privilege on %s, which was asked for, in\n%s", table, asked.stdout)
		}
	}

	got = invoke(t, place.with("migrate", "down", "--feature", "changes", "--to", "0", "--yes")...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "needs the tables of changes") {
		t.Errorf("%s", got.stderr)
	}
	invoke(t, place.with("migrate", "down", "--feature", "processors", "--to", "0", "--yes")...).want(t, console.ExitDone)
	wantTables(t, place, "down --feature processors", coreTables, scheduleTables)
	invoke(t, place.with("migrate", "up", "--feature", "all")...).want(t, console.ExitDone)
	everything := map[string]int{}
	for _, f := range allFeatures {
		everything[f] = 1
	}
	status(everything)
	for _, flags := range [][]string{{"--feature", "nothing"}, {"--feature", "all", "--to", "1"}, {"--feature", "schedules", "--to", "2"}} {
		args := append([]string{"migrate", "down", "--to", "0", "--yes"}, flags...)
		invoke(t, place.with(args...)...).want(t, console.ExitUsage)
	}
	invoke(t, place.with("migrate", "down", "--to", "0", "--yes")...).want(t, console.ExitDone)
	wantTables(t, place, "down")
	status(nil)
	for _, command := range [][]string{{"up"}, {"print"}, {"down", "--to", "0", "--yes"}} {
		args := append(append([]string{"migrate"}, command...), "--feature", "schedules", "--dsn", "sqlite:"+t.TempDir()+"/x")
		if got := invoke(t, args...).want(t, console.ExitUsage); !strings.Contains(got.stderr, "tenure_mode=lease") {
			t.Errorf("%v: %s", args, got.stderr)
		}
	}
}
