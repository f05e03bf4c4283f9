package cli

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// onScreen runs the program on a terminal of 80 columns until it ends.
func onScreen(t *testing.T, variables []string, args ...string) string {
	t.Helper()
	p := launchOnTerminal(t, variables, args...)
	p.exits(console.ExitDone)
	p.read.Wait()
	return p.output()
}

// A terminal of 80 columns shows what matters, and colors the states, unless the user
// wants all or no colors. A pipe shows all without colors.
func TestTablesFitTheTerminal(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	colors, none := []string{"TERM=xterm", "NO_COLOR="}, []string{"TERM=xterm", "NO_COLOR=1"}
	status := place.with("status")
	narrow := onScreen(t, colors, status...)
	if !strings.HasPrefix(narrow, "The role billing is led; 1 node is alive.") || !strings.Contains(narrow, "\x1b[32mled\x1b[0m") ||
		!strings.Contains(narrow, "SINCE") || strings.Contains(narrow, "APPLICATION") {
		t.Errorf("on a terminal: %q", narrow)
	}
	if wide := onScreen(t, colors, append(status, "-o", "wide")...); !strings.Contains(wide, "APPLICATION") || strings.Contains(wide, "…") || !strings.Contains(wide, "\x1b[32mled\x1b[0m") {
		t.Errorf("-o wide: %q", wide)
	}
	for name, text := range map[string]string{
		"NO_COLOR":               onScreen(t, none, status...),
		"--color never":          onScreen(t, colors, append(status, "--color", "never")...),
		"TERM=dumb":              onScreen(t, []string{"TERM=dumb", "NO_COLOR="}, status...),
		"-o json --color always": onScreen(t, colors, append(status, "-o", "json", "--color", "always")...),
		"a pipe":                 invoke(t, status...).want(t, console.ExitDone).stdout,
	} {
		if strings.Contains(text, "\x1b") || !strings.Contains(text, "led  ") && !strings.Contains(text, `"state":"led"`) {
			t.Errorf("%s: %q", name, text)
		}
	}
	piped := invoke(t, append(status, "--color", "always")...).want(t, console.ExitDone).stdout
	if !strings.Contains(piped, "\x1b[32mled\x1b[0m") || !strings.Contains(piped, "APPLICATION") {
		t.Errorf("--color always in a pipe: %q", piped)
	}
	invoke(t, append(status, "--color", "blue")...).want(t, console.ExitUsage)
}
