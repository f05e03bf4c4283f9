package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
)

// A retired role is hidden until a node leads it.
func TestRetiredRoleIsHidden(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	one := place.run(t, "--role", "billing", "--name", "one")
	one.await("acquired")
	for arguments, want := range map[string]string{
		"--role billing":             "one leads billing; stop its candidates first",
		"--role biling":              `did you mean "billing"?`,
		"--role a --role b":          "name one role",
		"--role other":               "no node has ever been a candidate for the role",
		"":                           "--role",
		"--role billing --dsn mysql": "",
	} {
		got := invoke(t, place.with(append([]string{"retire"}, strings.Fields(arguments)...)...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %q; want it to say %q", arguments, got.stderr, want)
		}
	}
	one.signal(syscall.SIGTERM)
	if code := one.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	shown := func() int {
		var seen roles.StatusRecord
		invoke(t, place.with("status", "-o", "json")...).want(t, console.ExitDone).decode(t, &seen)
		return len(seen.Roles)
	}
	if shown() != 1 {
		t.Error("a role that is vacant is not shown")
	}
	got := invoke(t, place.with("retire", "--role", "billing")...).want(t, console.ExitDone)
	if got.stdout != "billing is retired\n" || shown() != 0 {
		t.Errorf("%q, and then %d roles", got.stdout, shown())
	}
	place.run(t, "--role", "billing", "--name", "two").await("acquired")
	if shown() != 1 {
		t.Error("a role that is led again is not shown")
	}
}
