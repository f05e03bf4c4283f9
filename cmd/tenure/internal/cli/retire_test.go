package cli

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
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

// A pattern retires the vacant roles that match it, after a list and a confirmation.
func TestRetireSelectsByPattern(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	for _, role := range []string{"worker-1", "worker-2", "worker", "other"} {
		invoke(t, place.with("acquire", "--role", role)...).want(t, console.ExitDone)
	}
	place.run(t, "--role", "worker-3").await("acquired")
	for arguments, want := range map[string]string{
		"--match worker-*":             "use --yes",
		"--match= --yes":               "--match is empty",
		"--match a --role b":           "not both",
		"--role other --yes":           "require --match",
		"--match worker-* --dry-run=x": "invalid",
	} {
		got := invoke(t, place.with(append([]string{"retire"}, strings.Fields(arguments)...)...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %q; want it to say %q", arguments, got.stderr, want)
		}
	}
	listed := invoke(t, place.with("retire", "--match", "worker-?", "--dry-run")...).want(t, console.ExitDone)
	if want := "worker-1 would be retired\nworker-2 would be retired\nworker-3 has a leader and stays\n"; listed.stdout != want {
		t.Errorf("dry run: %q; want %q", listed.stdout, want)
	}
	var done roles.RetiredRecord
	invoke(t, place.with("retire", "--match", "worker-*", "--yes", "-o", "json")...).want(t, console.ExitDone).decode(t, &done)
	if done.DryRun || !slices.Equal(done.Retired, []string{"worker-1", "worker-2"}) || !slices.Equal(done.Led, []string{"worker-3"}) {
		t.Errorf("%+v", done)
	}
	var left []string
	for _, role := range place.status(t).Roles {
		left = append(left, role.Role)
	}
	if !slices.Equal(left, []string{"other", "worker", "worker-3"}) {
		t.Errorf("left: %q", left)
	}
	if again := invoke(t, place.with("retire", "--match", "worker-1", "--yes")...).want(t, console.ExitDone); again.stdout != "no role matches worker-1\n" {
		t.Errorf("again: %q", again.stdout)
	}
}
