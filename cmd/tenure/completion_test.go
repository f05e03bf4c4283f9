package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// offered is what completing the last argument offers.
func offered(t *testing.T, args ...string) []string {
	t.Helper()
	got := invoke(t, append([]string{"__complete"}, args...)...).want(t, exitDone)
	var values []string
	for line := range strings.Lines(got.stdout) {
		value, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(value, ":") { // the directive
			values = append(values, value)
		}
	}
	return values
}

// TestCompletionOfRolesAndNodes: they come from the database.
func TestCompletionOfRolesAndNodes(t *testing.T) {
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

// TestCompletionFailsSilently: no database, none that answers, a wrong file.
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
		if got := offered(t, append(args, "--role", "")...); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		if took := time.Since(began); took > completionTimeout+2*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func TestCompletionOfFixedValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--restart", ""}, "never on-failure always"},
		{[]string{"run", "--log-level", ""}, "debug info warn error"},
		{[]string{"observe", "--log-format", ""}, "text json"},
		{[]string{"status", "-o", ""}, "text json"},
		{[]string{"migrate", "down", "--to", ""}, ""},
		{[]string{"status", "--config", ""}, "toml"}, // as the extension
		{[]string{"config", "s"}, "show"},
	} {
		if got := strings.Join(offered(t, test.args...), " "); got != test.want {
			t.Errorf("%v: %q, want %q", test.args, got, test.want)
		}
	}
}

// TestCompletionScripts: there is one for each shell, and bash can read its own.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script := invoke(t, "completion", shell).want(t, exitDone).stdout
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
