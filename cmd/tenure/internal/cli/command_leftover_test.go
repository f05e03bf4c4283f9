//go:build linux

package cli

import (
	"path/filepath"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// leavesBehind is a command that ends with an exit code and leaves a process that
// ignores SIGTERM. This process makes a file and prints a line when the guardian knows
// that the command has ended.
func leavesBehind(file, code string) string {
	return `trap '' TERM; echo run; (while kill -0 $$; do sleep 0.01; done 2>/dev/null; : > ` + file + `; echo ended; exec sleep 600) & exit ` + code
}

// While the last processes of a command end that has ended on its own, the term ends.
// The command's exit code counts, and it does not run again.
func TestExitCodeCountsWhenTermEndsLater(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, test := range []struct {
		name, code string
		flags      []string
		want       int
	}{
		{"once", "7", []string{"--once"}, 7},
		{"never", "7", []string{"--restart", "never"}, 7},
		{"on failure", "0", nil, console.ExitDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			place := newPlace(t)
			node := launch(t, place.guarded(leavesBehind(filepath.Join(t.TempDir(), "ended"), test.code), append(test.flags, "--lease", "60s", "--grace", "6s")...)...)
			node.want("run")
			node.want("ended")
			launch(t, place.with("step-down", "--role", "billing")...) // it waits for a next term, which there may not be
			if line, more := node.line(); more {
				t.Errorf("line %q after the command has ended", line)
			}
			if code := node.exit(); code != test.want {
				t.Errorf("exit code %d, want %d; log:\n%s", code, test.want, node.log())
			}
		})
	}
}

// The health command fails when the command has ended, while its last processes end. The
// command's exit code counts.
func TestExitCodeCountsWhenHealthFailsLater(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	ended := filepath.Join(t.TempDir(), "ended")
	node := launch(t, newPlace(t).guarded(leavesBehind(ended, "0"), "--restart", "never", "--lease", "60s", "--grace", "8s",
		"--health-command", "! test -e "+ended, "--health-every", "1s")...)
	node.want("run")
	node.want("ended")
	node.awaitLog("failures=3")
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d, want that of the command, 0; log:\n%s", code, node.log())
	}
}
