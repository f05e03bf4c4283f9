package cli

import (
	"github.com/exactly-one/tenure/internal/pgtest"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
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
