package cli

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// schemaVersion returns the output of "tenure migrate version".
func (p place) schemaVersion(t *testing.T) int {
	t.Helper()
	var record database.SchemaRecord
	invoke(t, p.with("migrate", "version", "-o", "json")...).want(t, console.ExitDone).decode(t, &record)
	if record.Schema != p.schema || record.Prefix != "tenure_" {
		t.Errorf("%+v", record)
	}
	return record.SchemaVersion
}

// The command migrates up, down, and up again.
func TestMigrateMovesUpAndDown(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	if version := place.schemaVersion(t); version != 0 {
		t.Fatalf("version %d before", version)
	}
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	current := place.schemaVersion(t)
	if current == 0 {
		t.Fatal("version 0 after migrate")
	}
	got := invoke(t, place.with("migrate", "up")...).want(t, console.ExitDone) // nothing to do
	if want := "schema " + place.schema + ", prefix tenure_: version " + strconv.Itoa(current) + "\n"; got.stdout != want {
		t.Errorf("%q, want %q", got.stdout, want)
	}
	got = invoke(t, place.with("migrate", "down", "--to", "0", "--yes")...).want(t, console.ExitDone)
	if !strings.Contains(got.stdout, "no tables") || place.schemaVersion(t) != 0 {
		t.Errorf("%q", got.stdout)
	}
	invoke(t, place.with("migrate", "up")...).want(t, console.ExitDone)
	if version := place.schemaVersion(t); version != current {
		t.Errorf("version %d, want %d", version, current)
	}
}

// The printed SQL creates the schema that nodes accept.
func TestMigratePrintCreatesAcceptedSchema(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	sql := invoke(t, "migrate", "print", "--schema", place.schema).want(t, console.ExitDone).stdout
	if _, err := place.server.Conn(t).Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v in\n%s", err, sql)
	}
	invoke(t, place.with("acquire", "--role", "billing", "--manual-migrations")...).want(t, console.ExitDone)

	var record struct{ SQL string }
	invoke(t, "migrate", "print", "--schema", place.schema, "-o", "json").want(t, console.ExitDone).decode(t, &record)
	if record.SQL != sql {
		t.Errorf("JSON has another script:\n%s", record.SQL)
	}
}

// A user with the printed privileges can run a node.
func TestMigrateGrantsSufficeForNode(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	user := "u_" + place.schema
	run := place.user(t, user)
	asUser := []string{"acquire", "--role", "billing", "--schema", place.schema, "--dsn", place.server.DSNFor(user, "postgres")}
	got := invoke(t, asUser...).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "GRANT") {
		t.Errorf("the missing privilege is not named: %s", got.stderr)
	}
	run(invoke(t, "migrate", "grants", "--user", user, "--schema", place.schema).want(t, console.ExitDone).stdout)
	invoke(t, asUser...).want(t, console.ExitDone)

	both := strings.Split(invoke(t, "migrate", "grants", "--user", user, "--work", "--compaction", "--feature", "all").want(t, console.ExitDone).stdout, "\n")
	each := map[string]bool{}
	for _, statement := range both {
		each[statement] = true
	}
	if len(each) != len(both) || !each[`GRANT SELECT, DELETE ON TABLE "public"."tenure_changes" TO "`+user+`";`] {
		t.Errorf("work and compaction: %q; want each statement once", both)
	}
	for _, other := range []string{"--work", "--compaction"} {
		if got := invoke(t, "migrate", "grants", "--user", user, "--application", other).want(t, console.ExitUsage); !strings.Contains(got.stderr, "use only --") {
			t.Errorf("--application %s: %s", other, got.stderr)
		}
	}
	if got := invoke(t, "migrate", "grants", "--user", user, "--compaction", "--dsn", "sqlite:x").want(t, console.ExitUsage); !strings.Contains(got.stderr, "tenure_mode=lease") {
		t.Errorf("on SQLite: %s", got.stderr)
	}

	application := invoke(t, "migrate", "grants", "--user", user, "--application", "--node-user", "node").want(t, console.ExitDone).stdout
	if !strings.Contains(application, "UPDATE (fence)") {
		t.Errorf("not the privileges of an application:\n%s", application)
	}
}

// A user with only the privileges for work can use the commands on processors
// and schedules. Without them, the error says what to do.
func TestWorkGrantsSufficeForManagement(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	invoke(t, place.with("migrate", "up", "--feature", "schedules,processors", "--feature", "alerts")...).want(t, console.ExitDone)
	user := "u_" + place.schema
	run := place.user(t, user)
	run("GRANT USAGE ON SCHEMA " + place.schema + " TO " + user)
	each := func(code int, wanted string) {
		t.Helper()
		for _, args := range [][]string{{"cron", "list"}, {"processor", "list"}, {"alerts", "list"}} {
			got := invoke(t, append(args, "--schema", place.schema, "--dsn", place.server.DSNFor(user, "postgres"))...).want(t, code)
			if !strings.Contains(got.stderr, wanted) {
				t.Errorf("%v: %q; want %q", args, got.stderr, wanted)
			}
		}
	}
	each(console.ExitUsage, "GRANT SELECT ON TABLE")
	versions := `"` + place.schema + `"."tenure_migrations"`
	run("GRANT SELECT ON TABLE " + versions + " TO " + user)
	each(console.ExitUsage, "tenure migrate grants --work")
	run("REVOKE SELECT ON TABLE " + versions + " FROM " + user)
	run(invoke(t, place.with("migrate", "grants", "--user", user, "--work")...).want(t, console.ExitDone).stdout)
	each(console.ExitDone, "")
}

// user creates a database user, dropped with the test, and returns a function that
// runs SQL as the superuser.
func (p place) user(t *testing.T, name string) (run func(sql string)) {
	t.Helper()
	conn := p.server.Conn(t)
	run = func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v in\n%s", err, sql)
		}
	}
	run("CREATE ROLE " + name + " LOGIN")
	t.Cleanup(func() {
		_, _ = p.server.Conn(t).Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name, pgx.QueryExecModeSimpleProtocol)
	})
	return run
}

// Every command that would use a newer schema refuses it.
func TestNewerSchemaIsRefused(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	table := pgx.Identifier{place.schema, "tenure_migrations"}.Sanitize()
	pgtest.Exec(t, place.server.Conn(t), "INSERT INTO "+table+" (feature, version) VALUES ('core', 1000)")
	for _, args := range [][]string{
		{"run", "--role", "billing"}, {"acquire", "--role", "billing"}, {"migrate"}, {"migrate", "down", "--to", "0", "--yes"},
		{"status"}, {"step-down", "--role", "billing"}, {"history"}, {"history", "--nodes"}, {"node", "list"}, {"serve", "--listen", ":0"},
		{"cron", "list"}, {"cron", "history", "nightly"}, {"cron", "trigger", "nightly"}, {"cron", "pause", "nightly"},
		{"processor", "list"}, {"processor", "lag"}, {"processor", "pause", "orders"}, {"processor", "rewind", "orders", "--to", "start", "--yes"},
		{"alerts", "list"}, {"alerts", "export"}, {"status", "--watch"}, {"role", "rekey", "billing=7", "--yes"}, {"retire", "--match", "*", "--yes"},
	} {
		got := invoke(t, place.with(args...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, "version 1000") || !strings.Contains(got.stderr, "newer release") || got.stdout != "" && args[0] != "serve" || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: %s", args, got.stderr)
		}
	}
	if version := place.schemaVersion(t); version != 1000 {
		t.Errorf("version %d", version)
	}
}

// A user who lacks a privilege learns which one, and nothing is created.
func TestMissingPrivilegeIsNamed(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	place := place{server, server.Schema(t)}
	user := "nobody_" + place.schema
	pgtest.Exec(t, server.Conn(t), "CREATE ROLE "+pgx.Identifier{user}.Sanitize()+" LOGIN")
	for _, args := range [][]string{{"run", "--role", "a"}, {"acquire", "--role", "a"}, {"migrate"}} {
		got := invoke(t, append(args, "--dsn", server.DSNFor(user, "postgres"), "--schema", place.schema)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, "GRANT CREATE") || got.stdout != "" {
			t.Errorf("%v: %q, %q", args, got.stdout, got.stderr)
		}
	}
	if version := place.schemaVersion(t); version != 0 {
		t.Errorf("version %d", version)
	}
}
