package cli

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// One node elects by sessions, another by leases in the same database. The
// second is refused, and the error names the command that changes the mode.
func TestSecondModeInOneDatabaseIsRefused(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	dsn := place.server.DSN()
	mistyped := dsn + map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + "tenure_mode=lease"
	on := func(dsn string, args ...string) []string {
		return append(args, "--dsn", dsn, "--schema", place.schema)
	}
	node := launch(t, on(dsn, "acquire", "--role", "billing", "--hold", "--name", "one", "-o", "json")...)
	node.await("acquired")
	got := invoke(t, on(mistyped, "acquire", "--role", "billing")...)
	if got.code != console.ExitUsage {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	if !strings.Contains(got.stderr, "tenure migrate mode leases") {
		t.Errorf("by leases beside a session: %s", got.stderr)
	}
	got = invoke(t, on(mistyped, "migrate", "mode", "leases")...).want(t, console.ExitDatabase)
	if !strings.Contains(got.stderr, `node "one" on `) {
		t.Errorf("while a node lives: %s", got.stderr)
	}
	got = invoke(t, on(dsn, "migrate", "down", "--to", "0", "--yes")...).want(t, console.ExitDatabase)
	if !strings.Contains(got.stderr, `node "one" on `) {
		t.Errorf("down while a node lives: %s", got.stderr)
	}
	if got := invoke(t, on(mistyped, "doctor")...); !strings.Contains(got.stdout, "tenure migrate mode leases") {
		t.Errorf("doctor: %s", got.stdout)
	}
	node.signal(syscall.SIGTERM)
	node.exit()
	got = invoke(t, on(mistyped, "migrate", "mode", "leases")...).want(t, console.ExitDone)
	if !strings.Contains(got.stdout, "elects by leases") {
		t.Errorf("%s", got.stdout)
	}
	invoke(t, on(dsn, "acquire", "--role", "billing")...).want(t, console.ExitUsage)
	if got := invoke(t, on(mistyped, "acquire", "--role", "billing")...); got.code != console.ExitDone {
		t.Errorf("by leases afterwards: %d, %s", got.code, got.stderr)
	}
}

// With all defaults, both modes use the schema public, even if the user owns a schema
// of the user's name and the search path contains only that one.
func TestSecondModeOfUserWithSchemaIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	source := server.Database(t)
	database, _, _ := strings.Cut(source[strings.LastIndex(source, "/")+1:], "?")
	name := sandbox.UniqueName(t.Name())
	user, owner := pgx.Identifier{name}.Sanitize(), pgtest.Conn(t, source)
	execute := func(statements ...string) {
		for _, statement := range statements {
			if _, err := owner.Exec(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
	execute("CREATE ROLE "+user+" LOGIN SUPERUSER", "CREATE SCHEMA AUTHORIZATION "+user, "ALTER ROLE "+user+` SET search_path = "$user"`)
	t.Cleanup(func() { execute("DROP OWNED BY "+user, "DROP ROLE "+user) })
	dsn := server.DSNFor(name, database)
	mistyped := dsn + map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + "tenure_mode=lease"
	node := launch(t, "acquire", "--role", "billing", "--hold", "--name", "one", "-o", "json", "--dsn", dsn)
	node.await("acquired")
	got := invoke(t, "acquire", "--role", "billing", "--dsn", mistyped)
	if got.code != console.ExitUsage || !strings.Contains(got.stderr, "tenure migrate mode leases") {
		t.Errorf("by leases beside a session: exit code %d: %s", got.code, got.stderr)
	}
	if got := invoke(t, "doctor", "--dsn", mistyped); got.code != console.ExitDatabase || !strings.Contains(got.stdout, "tenure migrate mode leases") {
		t.Errorf("doctor: exit code %d: %s", got.code, got.stdout)
	}
	node.signal(syscall.SIGTERM)
	node.exit()
	got = invoke(t, "migrate", "mode", "leases", "--dsn", mistyped).want(t, console.ExitDone)
	if !strings.Contains(got.stdout, "schema public") {
		t.Errorf("%s", got.stdout)
	}
	invoke(t, "acquire", "--role", "billing", "--dsn", mistyped).want(t, console.ExitDone)
}
