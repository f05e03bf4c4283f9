package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A role whose candidates give another key than the recorded one leads again once
// the command in the message has recorded their key, on sessions and on leases.
func TestRekeyedRoleLeadsAgain(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	for name, dsn := range map[string][]string{
		"sessions": place.with(),
		"leases":   {"--dsn", "sqlite:" + filepath.Join(t.TempDir(), "leases.db")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := func(args ...string) []string { return append(args, dsn...) }
			const keyed = "scheduler=0x464F52470002"
			invoke(t, on("acquire", "--role", "scheduler")...).want(t, console.ExitDone)
			got := invoke(t, on("acquire", "--role", keyed)...).want(t, console.ExitUsage)
			if !strings.Contains(got.stderr, "tenure role rekey scheduler=77306496745474") {
				t.Errorf("no advice: %s", got.stderr)
			}
			for arguments, want := range map[string]string{
				"scheduler=7":                  "use --yes",
				"--yes schedular=7":            `did you mean "scheduler"?`,
				"--yes":                        "takes one role",
				"--yes a b":                    "takes one role",
				"--yes a=99999999999999999999": "out of range",
			} {
				got := invoke(t, on(append([]string{"role", "rekey"}, strings.Fields(arguments)...)...)...).want(t, console.ExitUsage)
				if !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
					t.Errorf("%s: %q; want it to say %q", arguments, got.stderr, want)
				}
			}
			var changed roles.RekeyedRecord
			invoke(t, on("role", "rekey", keyed, "--yes", "-o", "json")...).want(t, console.ExitDone).decode(t, &changed)
			if changed.Role != "scheduler" || changed.Key != "77306496745474" || changed.Before == changed.Key {
				t.Errorf("%+v", changed)
			}
			if again := invoke(t, on("role", "rekey", keyed, "--yes")...).want(t, console.ExitDone); again.stdout != "scheduler already has the key 77306496745474\n" {
				t.Errorf("again: %q", again.stdout)
			}
			invoke(t, on("acquire", "--role", "scheduler")...).want(t, console.ExitUsage)

			leader := launch(t, on("acquire", "--role", keyed, "--hold", "--name", "one", "-o", "json")...)
			leader.await("acquired")
			got = invoke(t, on("role", "rekey", "scheduler", "--yes")...).want(t, console.ExitUsage)
			if !strings.Contains(got.stderr, "one leads scheduler; stop its candidates first") {
				t.Errorf("while a node leads: %q", got.stderr)
			}
			leader.signal(syscall.SIGTERM)
			leader.exit()
			invoke(t, on("role", "rekey", "scheduler", "--yes")...).want(t, console.ExitDone)
			invoke(t, on("acquire", "--role", "scheduler")...).want(t, console.ExitDone)
		})
	}
}

// Commands name the role of keys in every form.
func TestCommandsAcceptEveryFormOfKeyPair(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("acquire", "--role", "pair:5,-6")...).want(t, console.ExitDone)
	for _, form := range [][]string{{"--role", "pair:5,-6"}, {"--role", "key:5:-6"}, {"--key1", "5", "--key2", "-6"}} {
		role := place.status(t, form...).Roles[0]
		if role.Role != "key:5:-6" || role.Key == nil || *role.Key != "5:-6" {
			t.Errorf("%v: %+v", form, role)
		}
	}
	if got := invoke(t, place.with("history", "--role", "pair:5,-6")...).want(t, console.ExitDone); !strings.Contains(got.stdout, "key:5:-6") {
		t.Errorf("history: %s", got.stdout)
	}
}
