package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
)

// writeFile writes a configuration file and returns its name.
func writeFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenure.toml")
	rewrite(t, path, lines...)
	return path
}

// rewrite replaces a file atomically, as editors do.
func rewrite(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// withoutKey are the flags that no file sets, with the reasons.
var withoutKey = map[string]string{
	"output":                "what a person or a script wants to read, at each call",
	"config":                "names the file",
	"help":                  "asks for help",
	"key":                   "another way to say --role, which run.roles can: key:42",
	"key1":                  "as key",
	"key2":                  "as key",
	"health-interval":       "another name of --refresh",
	"hold":                  "what acquire does, at each call",
	"agent":                 "which agent of its host a node uses, at each call",
	"socket":                "where agent serves the nodes of its host, at each call",
	"to":                    "what step-down, node drain, migrate and processor rewind do, at each call",
	"to-port":               "where proxy forwards to, at each call",
	"http":                  "as to-port",
	"wait":                  "as to-port",
	"max-connections":       "as to-port",
	"max-per-address":       "as to-port",
	"at":                    "the event that processor skip passes over, at each call",
	"own":                   "what step-down does, at each call",
	"timeout":               "how long a command waits, at each call",
	"watch":                 "what status and cluster status do, at each call",
	"match":                 "which roles or alerts a command is about, at each call",
	"comment":               "why an operator silences alerts, at each call",
	"incident":              "what alerts test is about, at each call",
	"print":                 "what alerts test does, at each call",
	"color":                 "as output; NO_COLOR sets it for all programs",
	"roles":                 "what doctor is asked, at each call",
	"force":                 "what node drain does, at each call",
	"no-wait":               "as force",
	"dead":                  "which nodes node forget is about, at each call",
	"older-than":            "as dead",
	"spread":                "which roles rebalance is about, at each call",
	"node-user":             "the user that the printed grants are for",
	"dry-run":               "what rebalance does, at each call",
	"yes":                   "as dry-run",
	"feature":               "which tables migrate is about, at each call",
	"user":                  "whom migrate grants is about, at each call",
	"application":           "as user",
	"work":                  "as user",
	"compaction":            "as user",
	"for":                   "how long a demonstration or a silence lasts, at each call",
	"kill-every":            "as for",
	"sqlite":                "as for",
	"no-descriptions":       "of completion, which takes no configuration",
	"url":                   "what health asks, which takes no configuration",
	"expr":                  "what cron next is asked, at each call",
	"tz":                    "as expr",
	"from":                  "as expr",
	"run":                   "as expr, for cron history",
	"count":                 "how many rows a command prints, at each call",
	"all":                   "which dead letters or silences a command is about, at each call",
	"by":                    "who makes a change, at each call",
	"access":                "what a new user may do, at each call",
	"state":                 "which alerts are listed, at each call",
	"limit":                 "as count",
	"since":                 "which part of the history is shown, at each call",
	"until":                 "as since",
	"node":                  "as since",
	"nodes":                 "as since",
	"days":                  "as since",
	"incidents":             "as since",
	"outages":               "as since",
	"job":                   "which job a new schedule runs, at each call",
	"catch-up":              "what an operator sets of a schedule, at each call",
	"catch-up-limit":        "as catch-up",
	"overlap":               "as catch-up",
	"jitter":                "as catch-up",
	"alert-interval":        "how often serve evaluates all [[alerts]] alike",
	"allow-unknown-metrics": "what config check refuses, at each call",
	"missed-after":          "how late cron run runs a tick, for all [[cron]] alike",
}

// Every flag has a key in the configuration file, or a reason why not.
func TestEveryFlagHasAKey(t *testing.T) {
	known := config.Flags()
	used := map[string]bool{}
	walk(wholeTree(), func(cmd *cobra.Command) {
		visit := func(flag *pflag.Flag) {
			used[flag.Name] = true
			if !slices.Contains(known, flag.Name) && withoutKey[flag.Name] == "" {
				t.Errorf("%s --%s has no key in tenure.toml, and no reason", cmd.CommandPath(), flag.Name)
			}
		}
		cmd.Flags().VisitAll(visit)
		cmd.PersistentFlags().VisitAll(visit)
	})
	for name := range maps.Keys(withoutKey) {
		if slices.Contains(known, name) {
			t.Errorf("--%s has a key and a reason to have none", name)
		}
	}
	for _, name := range []string{"dsn", "role", "lease", "log-level"} {
		if !used[name] {
			t.Errorf("no command has --%s: the test looks in the wrong place", name)
		}
	}
}

// walk visits every command that users can run.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	visit(cmd)
	for _, below := range cmd.Commands() {
		walk(below, visit)
	}
}

// A flag overrides the variable, and the variable overrides the file.
func TestFlagOverridesVariableAndFile(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	bad := "postgres://127.0.0.1:1/nowhere"
	good := writeFile(t, "[database]", `dsn = "`+server.DSN()+`"`, `schema = "`+schema+`"`)
	wrong := writeFile(t, "[database]", `dsn = "`+bad+`"`, `schema = "`+schema+`"`)
	for name, test := range map[string]struct {
		args, variables []string
		code            int
	}{
		"file by the flag":     {[]string{"--config", good}, nil, console.ExitDone},
		"file by the variable": {nil, []string{"TENURE_CONFIG=" + good}, console.ExitDone},
		"no file":              {nil, []string{"TENURE_CONFIG="}, console.ExitUsage},
		"two files":            {[]string{"--config", good}, []string{"TENURE_CONFIG=" + wrong}, console.ExitDone},
		"variable over file":   {[]string{"--config", wrong}, []string{"TENURE_DSN=" + server.DSN()}, console.ExitDone},
		"flag over variable":   {[]string{"--config", wrong, "--dsn", server.DSN()}, []string{"TENURE_DSN=" + bad}, console.ExitDone},
		"the file alone":       {[]string{"--config", wrong}, nil, console.ExitDatabase},
		"file over libpq":      {[]string{"--config", good}, []string{"PGHOST=127.0.0.2"}, console.ExitDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invokeWith(t, test.variables, append([]string{"migrate", "version"}, test.args...)...).want(t, test.code)
		})
	}
}

// With the configuration file alone, a node campaigns for its roles.
func TestRunReadsRolesFromFile(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	path := writeFile(t, "[database]", `dsn = "`+place.server.DSN()+`"`, `schema = "`+place.schema+`"`,
		"[node]", `name = "from-file"`, "[run]", `roles = ["billing"]`)
	node := launch(t, "run", "-o", "json", "--config", path)
	if got := node.await("acquired"); got["role"] != "billing" || got["node_name"] != "from-file" {
		t.Errorf("%v", got)
	}
}

// The command can be in the file. Then it does not receive SIGHUP, nor the
// variables of a service manager.
func TestConfigurationFileSetsTheCommand(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	path := writeFile(t, "[database]", `dsn = "`+place.server.DSN()+`"`, `schema = "`+place.schema+`"`, "[run]",
		`roles = ["billing"]`, `command = "echo term $TENURE_TERM of $TENURE_ROLE, socket $NOTIFY_SOCKET; read line"`, `restart = "never"`)
	socket := listenAsManager(t)
	node := launchWith(t, []string{"NOTIFY_SOCKET=" + socket.path}, "run", "--config", path)
	line, _ := node.line()
	term := place.status(t).Roles[0].Leader.Term
	if line != fmt.Sprintf("term %d of billing, socket", term) {
		t.Errorf("%q in term %d", line, term)
	}
	socket.await("READY=1")
	socket.await(fmt.Sprintf("STATUS=Leads billing (term %d).", term))
	node.signal(syscall.SIGHUP)
	socket.await("RELOADING=1")
	node.awaitLog("the configuration was reloaded")
	node.signal(syscall.SIGTERM)
	socket.await("STOPPING=1")
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// Every error is reported on its own line, and nothing is started.
func TestBadConfigurationListsAllErrors(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "[cluster.leader_election]", "refresh_interval = 5", `lease_durations = "10s"`)
	lines := []string{path + ":2:20: cluster.leader_election.refresh_interval: 5 has no unit", path + `:3:1: unknown key "lease_durations"`}
	for _, args := range [][]string{
		{"run", "--role", "a", "--dsn", "postgres://127.0.0.1:1/nowhere"}, {"config", "check"}, {"config", "show"}, {"status"},
	} {
		t.Run(strings.Join(args[:1], " "), func(t *testing.T) {
			t.Parallel()
			got := invoke(t, append(args, "--config", path)...).want(t, console.ExitUsage)
			told := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
			if len(told) != 2 || !strings.HasPrefix(told[0], "tenure: "+lines[0]) || !strings.HasPrefix(told[1], "tenure: "+lines[1]) {
				t.Errorf("got %q, want %q", told, lines)
			}
		})
	}
	// Commands that need no database still work, so that the file can be repaired.
	invokeWith(t, []string{"TENURE_CONFIG=" + path}, "version").want(t, console.ExitDone)
	got := invokeWith(t, []string{"TENURE_LEASE=10x", "TENURE_DSN=postgres://h"}, "run", "--role", "a").want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "TENURE_LEASE") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%q", got.stderr)
	}
	missing := invoke(t, "status", "--config", path+".not").want(t, console.ExitUsage)
	if !strings.Contains(missing.stderr, "no such file") {
		t.Errorf("%q", missing.stderr)
	}
}

// Conditions of alerts are checked where the server is installed; elsewhere the command says
// that they are not.
func TestConfigCheckReportsErrors(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "[[alerts]]", `name = "busy"`, `condition = "increase(tenure_leader_elections_total[5m]) > 5"`, "[run]", `roles = ["a"]`)
	if got := invoke(t, "config", "check", path).want(t, console.ExitDone); got.stdout != path+": no errors\n" {
		t.Errorf("%q", got.stdout)
	}
	var checked record.Checked
	invokeWith(t, []string{"PATH=" + t.TempDir()}, "config", "check", "-o", "json", "--config", path).want(t, console.ExitDone).decode(t, &checked)
	const alone = ":3: conditions and templates of alerts are not checked: only tenure-server reads them"
	if checked.File != path || len(checked.Notices) != 1 || checked.Notices[0] != path+alone {
		t.Errorf("%+v", checked)
	}
	invoke(t, "config", "check").want(t, console.ExitUsage)
	invoke(t, "config", "check", path, path).want(t, console.ExitUsage)
}

func TestConfigShowPrintsSources(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "[database]", `dsn = "postgres://app:`+secret+`@db/app"`, "[node]", `log_level = "info"`)
	got := invokeWith(t, []string{"TENURE_REFRESH=2s"}, "config", "show", "--config", path, "--lease", "7s").want(t, console.ExitDone)
	for _, line := range []string{
		`dsn = "postgres://app:`, `log_level = "info"  # ` + path + `:4`, `lease_duration = "7s"  # --lease`, `refresh_interval = "2s"  # TENURE_REFRESH`,
	} {
		if !strings.Contains(got.stdout, line) {
			t.Errorf("no %q in\n%s", line, got.stdout)
		}
	}
	if strings.Contains(got.stdout, secret) {
		t.Errorf("the password is shown:\n%s", got.stdout)
	}
	var shown struct{ TOML string }
	invoke(t, "config", "show", "-o", "json").want(t, console.ExitDone).decode(t, &shown)
	if !strings.Contains(shown.TOML, "check_interval") {
		t.Errorf("%+v", shown)
	}
}

// SIGHUP applies the keys that can be changed and reports those that cannot; a
// file with errors changes nothing.
func TestReloadAppliesChangeableKeys(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	begin := []string{"[database]", `dsn = "` + place.server.DSN() + `"`, `schema = "` + place.schema + `"`, "[run]", `roles = ["billing"]`}
	path := writeFile(t, begin...)
	node := launchWith(t, []string{"TENURE_NODE_NAME=fixed"}, "run", "-o", "json", "--check-interval", "1s", "--config", path)
	term := node.await("acquired").term()

	rewrite(t, path, append(begin, "[node]", `name = "other"`, `log_level = "debug"`,
		"[cluster.leader_election]", `lease_duration = "20s"`, `check_interval = "3s"`, "[shutdown]", `drain_timeout = "5s"`)...)
	node.signal(syscall.SIGHUP)
	node.awaitLog("the configuration was reloaded")
	for _, want := range []string{
		`msg="a change was applied" change="node.log_level changes from the default to \"debug\""`,
		`msg="a change was applied" change="shutdown.drain_timeout changes from the default to \"5s\""`,
		`msg="a change takes effect after a restart of the program" change="cluster.leader_election.lease_duration changes`,
		`msg="a change has no effect" change=cluster.leader_election.check_interval outranked_by=--check-interval`,
		`msg="a change has no effect" change=node.name outranked_by=TENURE_NODE_NAME`,
	} {
		if !strings.Contains(node.log(), want) {
			t.Errorf("no %s in\n%s", want, node.log())
		}
	}

	rewrite(t, path, append(begin, "[node]", `log_level = "loud"`)...)
	node.signal(syscall.SIGHUP)
	node.awaitLog("the configuration was not reloaded")

	// The level is debug now: a lost session shows it, and a new term.
	place.terminate(t, "billing")
	node.awaitLog("level=DEBUG")
	if got := node.await("acquired").term(); got <= term {
		t.Errorf("term %d after %d", got, term)
	}
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// Without a file, SIGHUP ends the program: there is nothing to read again.
func TestHangupWithoutFileEndsProgram(t *testing.T) {
	t.Parallel()
	node := newPlace(t).run(t, "--role", "billing")
	node.await("acquired")
	node.signal(syscall.SIGHUP)
	node.exit()
	if status, ok := node.command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGHUP {
		t.Errorf("the process ended by %v", node.command.ProcessState)
	}
}
