package cli

import (
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// A role that a program has acquired by its name is the role that the built-in
// scheduler leads.
func TestBuiltInRoleHasItsName(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("acquire", "--role", "scheduler")...).want(t, console.ExitDone)
	path := place.schedules(t, `name = "tick"`+"\n"+never+"\n"+`command = ["true"]`)
	scheduler := launch(t, "cron", "run", "--config", path, "--name", "one")
	eventually(t, "the session that leads", func() bool {
		role := place.status(t, "--role", "scheduler").Roles[0]
		return len(role.Sessions) == 1 && role.Sessions[0].State == roles.StateLed && role.Sessions[0].PID > 0
	})
	scheduler.signal(syscall.SIGTERM)
	scheduler.exit()
}

// advised returns the flag in the message about another key.
var advised = regexp.MustCompile(`--role (\S+|'[^']*'),`)

// A role keeps the key that it was first given, status shows that key, and the
// message about another key explains how to use the stored one.
func TestRoleKeepsStoredKey(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	// Keys are shared by all schemas of a database, so each test has its own.
	const given = "0x464F52470005"
	for name, c := range map[string]struct{ first, other string }{
		"given":   {"scheduler=" + given, "scheduler"},
		"derived": {"scheduler", "scheduler=" + given},
		"spaces":  {"the scheduler=77306496745477", "the scheduler"},
	} {
		t.Run(name, func(t *testing.T) { // one after another: the database has one key
			place := newPlace(t)
			holder := launch(t, place.with("acquire", "--role", c.first, "--hold", "--name", "one", "-o", "json")...)
			holder.await("acquired")
			for _, way := range []string{c.first, c.other} {
				role := place.status(t, "--role", way).Roles[0]
				if keyed := strings.Contains(c.first, "="); role.Key == nil || (*role.Key == "77306496745477") != keyed {
					t.Errorf("status of %s: key %v", way, role.Key)
				}
				if len(role.Sessions) != 1 || role.Sessions[0].State != roles.StateLed {
					t.Errorf("status of %s: %+v", way, role)
				}
			}
			got := invoke(t, place.with("acquire", "--role", c.other)...).want(t, console.ExitUsage)
			match := advised.FindStringSubmatch(got.stderr)
			if match == nil {
				t.Fatalf("no advice: %s", got.stderr)
			}
			holder.signal(syscall.SIGTERM)
			holder.exit()
			invoke(t, place.with("acquire", "--role", strings.Trim(match[1], "'"))...).want(t, console.ExitDone)
		})
	}
}

// A role with a key in the configuration file, or in its variable, is the role that the
// other commands find by the same text.
func TestConfiguredRoleKeepsItsKey(t *testing.T) {
	t.Parallel()
	const role, key = "billing=0x54454E555245", "92656643691077"
	for name, setting := range map[string]struct{ file, variables []string }{
		"file":     {file: []string{"[run]", `roles = ["` + role + `"]`}},
		"variable": {variables: []string{"TENURE_RUN_ROLES=" + role}},
	} {
		t.Run(name, func(t *testing.T) { // one after another: the database has one key
			place := newPlace(t)
			path := writeFile(t, append([]string{"[database]", `dsn = "` + place.server.DSN() + `"`, `schema = "` + place.schema + `"`}, setting.file...)...)
			node := launchWith(t, setting.variables, "run", "--config", path, "--address", "127.0.0.1", "-o", "json")
			if got := node.await("acquired"); got["role"] != "billing" {
				t.Errorf("acquired %v, want the role billing", got)
			}
			status := place.status(t, "--role", role).Roles[0]
			if status.Key == nil || status.Leader == nil {
				t.Fatalf("status: %+v, want a key and a leader", status)
			}
			if status.Role != "billing" || *status.Key != key {
				t.Errorf("status: %s with the key %s, want billing with %s", status.Role, *status.Key, key)
			}

			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			_, address := place.proxyTo(t, role, "--to-port", port)
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if forwarded, err := listener.Accept(); err != nil {
				t.Error(err)
			} else {
				_ = forwarded.Close()
			}

			invoke(t, place.with("step-down", "--role", role)...).want(t, console.ExitDone)
			node.await("released")
		})
	}
}

// Every command accepts --role in the same forms, and rejects others in one
// line before it connects to a database.
func TestEveryRoleFlagHasTheSameForms(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	path := place.schedules(t, `name = "tick"`+"\n"+never+"\n"+`command = ["true"]`)
	commands := 0
	walk(wholeTree(), func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("role") == nil || cmd.CommandPath() == "tenure config show" { // that command prints its input
			return
		}
		commands++
		args := strings.Fields(cmd.CommandPath())[1:]
		if cmd.CommandPath() == "tenure cron run" {
			args = append(args, "--config", path)
		}
		for role, want := range map[string]string{
			"":                         "the name is empty",
			"a\tb":                     "control character",
			"a=99999999999999999999":   "the key of a is out of range",
			"key:1:99999999999":        "the role key:1:99999999999 is out of range",
			"key:99999999999999999999": "the role key:99999999999999999999 is out of range",
		} {
			got := invoke(t, append(args, "--role="+role)...).want(t, console.ExitUsage)
			if !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%s --role=%q: %q; want it to say %q", cmd.CommandPath(), role, got.stderr, want)
			}
		}
	})
	if commands < 7 {
		t.Errorf("%d commands have the flag", commands)
	}
}
