package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestBuiltInRoleByName: a role that somebody has acquired by its name is the one
// that the built-in scheduler leads.
func TestBuiltInRoleByName(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("acquire", "--role", "scheduler")...).want(t, exitDone)
	path := place.schedules(t, `name = "tick"`+"\n"+never+"\n"+`command = ["true"]`)
	scheduler := launch(t, "cron", "run", "--config", path, "--name", "one")
	eventually(t, "the session that leads", func() bool {
		role := place.status(t, "--role", "scheduler").Roles[0]
		return len(role.Sessions) == 1 && role.Sessions[0].State == stateLeads && role.Sessions[0].PID > 0
	})
	scheduler.signal(syscall.SIGTERM)
	scheduler.exit()
}

// advised is the flag in the message about another key.
var advised = regexp.MustCompile(`--role (\S+|'[^']*'),`)

// TestRoleWithAStoredKey: a role keeps the key that it was first given, status
// shows that one, and the message about another key says how to use it.
func TestRoleWithAStoredKey(t *testing.T) {
	t.Parallel()
	const given = "0x464F52470001"
	for name, c := range map[string]struct{ first, other string }{
		"given":   {"scheduler=" + given, "scheduler"},
		"derived": {"scheduler", "scheduler=" + given},
		"spaces":  {"the scheduler=77306496745473", "the scheduler"},
	} {
		t.Run(name, func(t *testing.T) { // in turn: the key is the database's
			place := newPlace(t)
			holder := launch(t, place.with("acquire", "--role", c.first, "--hold", "--name", "one", "-o", "json")...)
			holder.await("acquired")
			for _, way := range []string{c.first, c.other} {
				role := place.status(t, "--role", way).Roles[0]
				if keyed := strings.Contains(c.first, "="); (role.Key == "77306496745473") != keyed {
					t.Errorf("status of %s: key %s", way, role.Key)
				}
				if len(role.Sessions) != 1 || role.Sessions[0].State != stateLeads {
					t.Errorf("status of %s: %+v", way, role)
				}
			}
			got := invoke(t, place.with("acquire", "--role", c.other)...).want(t, exitUsage)
			match := advised.FindStringSubmatch(got.stderr)
			if match == nil {
				t.Fatalf("no advice: %s", got.stderr)
			}
			holder.signal(syscall.SIGTERM)
			holder.exit()
			invoke(t, place.with("acquire", "--role", strings.Trim(match[1], "'"))...).want(t, exitDone)
		})
	}
}
