package cli

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// examine returns the JSON output of "tenure doctor".
func examine(t *testing.T, code int, args ...string) map[string]string {
	t.Helper()
	var record struct {
		Findings []struct{ Name, Severity, Detail, Advice string }
	}
	invoke(t, append([]string{"doctor", "-o", "json"}, args...)...).want(t, code).decode(t, &record)
	found := map[string]string{}
	for _, f := range record.Findings {
		if f.Detail == "" {
			t.Errorf("%s says nothing", f.Name)
		}
		found[f.Name] = f.Severity
	}
	return found
}

// The command finds no failure, and changes nothing.
func TestDoctorFindsNoFailureOnHealthyDatabase(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for range 2 { // without and with a schema
		before := place.schemaVersion(t)
		found := examine(t, console.ExitDone, place.with()...)
		for name, severity := range found {
			if severity == doctor.Failure.String() {
				t.Errorf("%s: %s", name, severity)
			}
		}
		if len(found) < 8 {
			t.Errorf("only %v", found)
		}
		if place.schemaVersion(t) != before {
			t.Error("the doctor changed the schema")
		}
		invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	}
	invoke(t, place.with("migrate", "up", "--feature", "changes")...).want(t, console.ExitDone)
	text := invoke(t, place.with("doctor")...).want(t, console.ExitDone).stdout
	if !strings.HasPrefix(text, "ok") || !strings.Contains(text, "PostgreSQL") {
		t.Errorf("%s", text)
	}
	for name, want := range map[string]string{"tables of changes": "version 1", "tables of schedules": "not installed"} {
		_, line, _ := strings.Cut(text, name)
		if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, want) {
			t.Errorf("%s: %q; want %q", name, line, want)
		}
	}
}

// The command reports what is wrong, with exit code 3.
func TestDoctorReportsFailures(t *testing.T) {
	t.Parallel()
	found := examine(t, console.ExitDatabase, "--dsn", "postgres://u:"+secret+"@127.0.0.1:1/nowhere")
	if found["connection"] != doctor.Failure.String() {
		t.Errorf("unreachable: %v", found)
	}

	primary := pgtest.Start(t, pgtest.Options{})
	replica := primary.Replica(t, pgtest.ReplicaOptions{})
	got := invoke(t, "doctor", "--dsn", replica.DSN()).want(t, console.ExitDatabase)
	if !strings.Contains(got.stdout, "failure") || !strings.Contains(got.stdout, "recovery") {
		t.Errorf("replica: %s", got.stdout)
	}
	if !strings.HasPrefix(got.stderr, "tenure: a node with this connection cannot take part in elections: ") {
		t.Errorf("%s", got.stderr)
	}
	if strings.Contains(got.stderr, "elections cannot work") { // they do on the primary
		t.Errorf("%s", got.stderr)
	}
	for _, command := range []string{"run", "acquire"} { // a refusal ends them immediately
		got := invoke(t, command, "--role", "billing", "--dsn", replica.DSN()).want(t, console.ExitDatabase)
		if got.stdout != "" || !strings.Contains(got.stderr, "in recovery") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s on a replica: %q, %q", command, got.stdout, got.stderr)
		}
	}
}

// Among tables of another program, the command reports what a node reports that opens.
func TestDoctorReportsTablesOfAnotherProgram(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	_, err := place.server.Conn(t).Exec(t.Context(), `CREATE SCHEMA IF NOT EXISTS `+place.schema+
		`; CREATE TABLE `+place.schema+`.tenure_nodes (id text, status text); CREATE TABLE `+place.schema+`.tenure_terms (id text, retired_at text)`)
	if err != nil {
		t.Fatal(err)
	}
	opening := invoke(t, place.with("acquire", "--role", "billing")...)
	const reason = "has an object of another program, or of leases, with a name of ours: choose another prefix"
	got := invoke(t, place.with("doctor")...)
	if got.code != console.ExitDatabase || !strings.Contains(opening.stderr, reason) || !strings.Contains(got.stdout, reason) || strings.Contains(got.stdout, "the first node to open brings") {
		t.Errorf("doctor exits with %d and reports\n%s\nand a node that opens %q; want %q of both", got.code, got.stdout, opening.stderr, reason)
	}
	if strings.Contains(got.stdout, "examination") {
		t.Errorf("doctor reports a failed examination:\n%s", got.stdout)
	}
}

// The command predicts whether the lock table has room for a number of roles.
func TestDoctorPredictsLockTable(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	lockTable := func(roles string) database.FindingRecord {
		t.Helper()
		var record struct {
			Findings []struct{ Name, Severity, Detail, Advice string }
		}
		invoke(t, place.with("doctor", "-o", "json", "--roles", roles)...).want(t, console.ExitDone).decode(t, &record)
		for _, f := range record.Findings {
			if f.Name == database.LockTableFinding {
				return database.FindingRecord{Name: f.Severity, Detail: f.Detail, Advice: f.Advice}
			}
		}
		t.Fatalf("nothing about the lock table: %+v", record)
		return database.FindingRecord{}
	}
	if few := lockTable("10"); few.Name != "ok" || few.Advice != "" || !strings.Contains(few.Detail, "10 roles on 0 nodes") {
		t.Errorf("10 roles: %+v", few)
	}
	if many := lockTable("1000000"); many.Name != "warning" || !strings.Contains(many.Advice, "set max_locks_per_transaction to ") {
		t.Errorf("1,000,000 roles: %+v", many)
	}
	for want, args := range map[string][]string{
		"must be an integer": place.with("doctor", "--roles", "x"),
		"between 0":          place.with("doctor", "--roles", "-1"),
		"leases do not use":  {"doctor", "--roles", "5", "--dsn", "sqlite:" + t.TempDir() + "/leases.db"},
	} {
		if got := invoke(t, args...).want(t, console.ExitUsage); !strings.Contains(got.stderr, want) {
			t.Errorf("%q, want %s", got.stderr, want)
		}
	}
}
