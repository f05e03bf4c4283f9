package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/testkit"
)

// offered returns the completions of the last argument. A program offers nothing while the
// database does not answer within connect.CompletionTimeout.
func offered(t *testing.T, args ...string) []string {
	t.Helper()
	var values []string
	err := testkit.Until(t.Context(), patience, time.Millisecond, func() error {
		var failed bool
		if values, failed = completeOnce(t, args...); failed {
			return fmt.Errorf("%q: no answer within %v", args, connect.CompletionTimeout)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return values
}

// completeOnce returns what a program offers, and whether it could not ask the database.
func completeOnce(t *testing.T, args ...string) (values []string, failed bool) {
	t.Helper()
	got := invoke(t, append([]string{"__complete"}, args...)...).want(t, console.ExitDone)
	for line := range strings.Lines(got.stdout) {
		value, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		directive, isDirective := strings.CutPrefix(value, ":")
		if !isDirective {
			values = append(values, value)
			continue
		}
		flags, err := strconv.Atoi(directive)
		failed = err != nil || flags&int(cobra.ShellCompDirectiveError) != 0
	}
	return values, failed
}

// Names are completed from the database.
func TestCompletionReadsRolesAndNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--role", "backup", "--role", "reports", "--name", "api-1")
	for range 3 {
		node.await("acquired")
	}
	for _, command := range []string{"run", "acquire", "status", "observe", "step-down"} {
		got := offered(t, append(place.with(command), "--role", "b")...)
		slices.Sort(got)
		if !slices.Equal(got, []string{"backup", "billing"}) {
			t.Errorf("%s --role b: %v", command, got)
		}
	}
	if got := offered(t, append(place.with("step-down", "--role", "billing"), "--to", "")...); !slices.Equal(got, []string{"api-1"}) {
		t.Errorf("--to: %v", got)
	}
	id := nodeNamed(t, place.cluster(t), "api-1").ID.String()
	for _, command := range []string{"show", "drain", "undrain"} {
		got := offered(t, append(place.with("node", command), "")...)
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values([]string{id, "api-1"}))) {
			t.Errorf("node %s: %v", command, got)
		}
	}
	if got := offered(t, append(place.with("node", "forget"), "")...); len(got) != 0 {
		t.Errorf("node forget: %v", got)
	}
	if got := offered(t, append(place.with("node", "show"), "api-1", "")...); len(got) != 0 {
		t.Errorf("a second node: %v", got)
	}
	path := writeFile(t, "[database]", `dsn = "`+place.server.DSN()+`"`, `schema = "`+place.schema+`"`)
	if got := offered(t, "status", "--config", path, "--role", "r"); !slices.Equal(got, []string{"reports"}) {
		t.Errorf("by the file: %v", got)
	}
}

// bash inserts names without quoting and evaluates them. A role whose name is a
// command must not run when a user completes a line.
func TestCompletionOffersOnlyShellWords(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	ran := filepath.Join(t.TempDir(), "ran")
	names := []string{
		"x$(touch " + ran + ")", "x`touch " + ran + "`", "x;touch " + ran, "x y", "x|y", "x&y", "x>" + ran, "x*", "x'y", `x"y`, `x\y`, "x{a,b}", "x!y", "x#", "xa\u200bb",
		"~root", "-rf", "=ls", "x=~root", "größe", "x.plain_1:2/3@4%5+6-7",
	}
	args := []string{"run"}
	for _, name := range names {
		args = append(args, "--role="+name)
	}
	node := launch(t, place.with(append(args, "-o", "json", "--name", "x$(touch "+ran+")")...)...)
	for range names {
		node.await("acquired")
	}
	got := offered(t, append(place.with("status"), "--role", "")...)
	if slices.Sort(got); !slices.Equal(got, []string{"größe", "x.plain_1:2/3@4%5+6-7"}) {
		t.Errorf("roles: %q", got)
	}
	id := nodeNamed(t, place.cluster(t), "x$(touch "+ran+")").ID.String()
	if got := offered(t, append(place.with("node", "show"), "")...); !slices.Equal(got, []string{id}) {
		t.Errorf("nodes: %q, want the id %s alone", got, id)
	}

	directory := t.TempDir()
	wrapper := filepath.Join(directory, "tenure")
	if err := os.WriteFile(wrapper, fmt.Appendf(nil, "#!/bin/sh\n%s=1 exec %s \"$@\"\n", asProgram, os.Args[0]), 0o700); err != nil {
		t.Fatal(err)
	}
	script := `compopt() { :; }
_init_completion() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
source <(tenure completion bash)
COMP_WORDS=(tenure status --role x); COMP_CWORD=3; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_tenure
for word in "${COMPREPLY[@]}"; do eval "printf '%s\n' $word"; done`
	err := testkit.Until(t.Context(), patience, time.Millisecond, func() error {
		shell := exec.CommandContext(t.Context(), "bash", "-c", script)
		shell.Env = append(environment(), "PATH="+directory+":"+os.Getenv("PATH"), "TENURE_DSN="+place.server.DSN(), "TENURE_SCHEMA="+place.schema)
		out, err := shell.CombinedOutput()
		if err == nil && len(out) == 0 {
			err = fmt.Errorf("no answer within %v", connect.CompletionTimeout)
		} else if err == nil && strings.TrimSpace(string(out)) != "x.plain_1:2/3@4%5+6-7" {
			t.Errorf("bash completes %q", out)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a role's name has run as a command: %v", err)
	}
}

// The cases are: no database, a database that does not answer, an invalid file.
func TestCompletionFailsSilently(t *testing.T) {
	t.Parallel()
	hangs := listenSilently(t)
	for name, args := range map[string][]string{
		"none":     {"status"},
		"nowhere":  {"status", "--dsn", "postgres://127.0.0.1:1/x"},
		"silent":   {"status", "--dsn", "postgres://" + hangs + "/x?sslmode=disable"},
		"file":     {"status", "--config", filepath.Join(t.TempDir(), "none.toml")},
		"no table": {"status", "--dsn", "sqlite:" + filepath.Join(t.TempDir(), "leases.db")},
	} {
		began := time.Now()
		if got, _ := completeOnce(t, append(args, "--role", "")...); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		if took := time.Since(began); took > connect.CompletionTimeout+patience/2 {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func TestCompletionOffersFixedValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--restart", ""}, "never on-failure always"},
		{[]string{"run", "--log-level", ""}, "debug info warn error"},
		{[]string{"observe", "--log-format", ""}, "text json"},
		{[]string{"status", "-o", ""}, "text wide json"},
		{[]string{"status", "--color", ""}, "auto always never"},
		{[]string{"migrate", "down", "--to", ""}, ""},
		{[]string{"status", "--config", ""}, "toml"}, // as the extension
		{[]string{"config", "s"}, "show"},
	} {
		if got := strings.Join(offered(t, test.args...), " "); got != test.want {
			t.Errorf("%v: %q, want %q", test.args, got, test.want)
		}
	}
}

// There is a script for each shell, and bash can parse its script.
func TestCompletionScriptsExistForEachShell(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script := invoke(t, "completion", shell).want(t, console.ExitDone).stdout
		if !strings.Contains(script, "tenure") {
			t.Errorf("%s: %q", shell, script)
		}
		if shell != "bash" {
			continue
		}
		check := exec.CommandContext(t.Context(), "bash", "-n")
		check.Stdin = strings.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
