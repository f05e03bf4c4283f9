package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/tree"
)

// buildServer builds tenure-server into a new folder and puts it first in the PATH, where the
// program finds it.
func buildServer() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "tenure-server"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(folder, serverName), "./"+serverName)
	build.Dir = "../../../../server"
	if output, err := build.CombinedOutput(); err != nil {
		return folder, fmt.Errorf("build %s: %w\n%s", serverName, err, output)
	}
	return folder, os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// serverCommands are the commands of the server as it lists them.
var serverCommands = sync.OnceValues(func() (tree.Listing, error) {
	var listing tree.Listing
	output, err := exec.Command(serverName, "commands").Output()
	if err != nil {
		return listing, err
	}
	return listing, json.Unmarshal(output, &listing)
})

// wholeTree is the tree of commands as a user sees it: with those of the server.
func wholeTree() *cobra.Command {
	root := newRoot()
	listing, err := serverCommands()
	if err != nil {
		panic(err)
	}
	for _, command := range listing.Commands {
		name, _, _ := strings.Cut(command.Use, " ")
		if here, _, err := root.Find([]string{name}); err == nil && here.DisableFlagParsing {
			root.RemoveCommand(here)
			root.AddCommand(graft(command))
		}
	}
	return root
}

// graft makes commands of listings. They can be read and parsed but not run.
func graft(l tree.Listing) *cobra.Command {
	cmd := &cobra.Command{Use: l.Use, Short: l.Short, Long: l.Long, Example: l.Example, Run: func(*cobra.Command, []string) {}}
	for _, f := range l.Flags {
		flags := cmd.Flags()
		if f.Inherited {
			flags = cmd.PersistentFlags()
		}
		flags.AddFlag(&pflag.Flag{
			Name: f.Name, Shorthand: f.Shorthand, Usage: f.Usage, DefValue: f.Default, Hidden: f.Hidden, NoOptDefVal: f.NoValue, Value: &listedValue{f.Default, f.Type},
		})
	}
	for _, below := range l.Commands {
		cmd.AddCommand(graft(below))
	}
	return cmd
}

// listedValue is the value of a listed flag.
type listedValue struct{ text, kind string }

func (v *listedValue) String() string        { return v.text }
func (v *listedValue) Set(text string) error { v.text = text; return nil }
func (v *listedValue) Type() string          { return v.kind }

// A command of the server says how to install the server where it is missing, and hands over
// its arguments, its exit code and its output where it is there.
func TestDoorLeadsToServer(t *testing.T) {
	t.Parallel()
	missing := invokeWith(t, []string{"PATH=" + t.TempDir()}, "-o", "json", "serve", "--listen", ":0").want(t, console.ExitUsage)
	if lines := strings.Count(missing.stderr, "\n"); lines != 1 || !strings.Contains(missing.stderr, "go install github.com/exactly-one/tenure/server/tenure-server@") || missing.stdout != "" {
		t.Errorf("without the server: %q, %q", missing.stdout, missing.stderr)
	}
	if got := invoke(t, "alerts", "nope").want(t, console.ExitUsage); !strings.Contains(got.stderr, `there is no command "nope" in tenure alerts`) {
		t.Errorf("a wrong command: %q", got.stderr)
	}
	file := writeFile(t, "[[alerts]]", "name = 'a'", "condition = 'up == 0'")
	var exported struct {
		YAML string `json:"yaml"`
	}
	got := invoke(t, "-o", "json", "alerts", "export", "--config", file).want(t, console.ExitDone)
	if err := json.Unmarshal([]byte(got.stdout), &exported); err != nil || !strings.Contains(exported.YAML, "up == 0") {
		t.Errorf("flags before the command: %v, %s", err, got.stdout)
	}
	if got := completed(t, "alerts", "li"); len(got) != 1 || !strings.HasPrefix(got[0], "list") {
		t.Errorf("completed: %q", got)
	}
}

// completed returns what the program offers for the last argument.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	values, failed := completeOnce(t, args...)
	if failed {
		t.Errorf("the completion of %q failed", args)
	}
	return values
}

// A program tenure-server that is this program under another name does not become itself for
// ever.
func TestDoorToItselfIsRefused(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]func(path string) error{
		"a link": func(path string) error { return os.Symlink(os.Args[0], path) },
		"a copy": func(path string) error { return os.WriteFile(path, content, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := place(filepath.Join(folder, serverName)); err != nil {
				t.Fatal(err)
			}
			got := invokeWith(t, []string{"PATH=" + folder}, "serve").want(t, console.ExitUsage)
			if !strings.Contains(got.stderr, "go install github.com/exactly-one/tenure/server/tenure-server@") {
				t.Errorf("%q", got.stderr)
			}
		})
	}
}
