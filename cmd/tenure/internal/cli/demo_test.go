package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/demo"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/testkit"
)

// launchDemo starts the demonstration with a separate directory for temporary files.
func launchDemo(t *testing.T, args ...string) (program *process, temporary string) {
	t.Helper()
	// Not t.TempDir: the server's account must be able to enter it.
	temporary, err := os.MkdirTemp("", "tenure-demo-")
	if err == nil {
		err = os.Chmod(temporary, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	return launchWith(t, []string{"TMPDIR=" + temporary}, append([]string{"demo"}, args...)...), temporary
}

// descendants lists the processes whose command line or environment names the
// directory: servers by the former, nodes by the latter.
func descendants(t *testing.T, temporary string) []int {
	t.Helper()
	var pids []int
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(entries) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, entry := range entries {
		command, _ := os.ReadFile(filepath.Join(entry, "cmdline")) // it may have ended
		variables, _ := os.ReadFile(filepath.Join(entry, "environ"))
		if strings.Contains(string(command)+string(variables), temporary) {
			pid, _ := strconv.Atoi(filepath.Base(entry))
			pids = append(pids, pid)
		}
	}
	return pids
}

// left lists what is left of the demonstration.
func left(t *testing.T, temporary string) (files []os.DirEntry, pids []int) {
	t.Helper()
	files, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	return files, descendants(t, temporary)
}

// awaitNothingLeft waits until no process and no file of the demonstration is
// left.
func awaitNothingLeft(t *testing.T, temporary string) {
	t.Helper()
	testkit.AwaitNil(t, patience, func() error {
		if files, pids := left(t, temporary); len(files)+len(pids) > 0 {
			return fmt.Errorf("left: processes %v, files %v", pids, files)
		}
		return nil
	})
}

// The demonstration kills leaders, reports each failover, prints a summary, and
// leaves nothing behind.
func TestDemoReportsFailovers(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	program, temporary := launchDemo(t, "--for", "20s", "--kill-every", "0.5", "-o", "json")
	events := program.rest()
	if code := program.exit(); code != console.ExitDone {
		t.Fatalf("exit code %d: %s", code, program.log())
	}
	if files, pids := left(t, temporary); len(files)+len(pids) > 0 {
		t.Errorf("left: processes %v, files %v", pids, files)
	}
	var failovers int
	var term float64
	killed := ""
	for i, e := range events[:len(events)-1] {
		name := e["node_name"].(string)
		switch e["event"] {
		case "elected":
			if e["term"].(float64) <= term {
				t.Errorf("term %v after %v", e["term"], term)
			}
			term = e["term"].(float64)
			if i == 0 {
				break
			}
			failovers++
			took := e["failover_seconds"].(float64)
			if e["replaced"] != killed || name == killed || took <= 0 || took > 10 {
				t.Errorf("after the death of %s: %v", killed, e)
			}
		case "killed":
			killed = name
		default:
			t.Errorf("unknown event %v", e)
		}
	}
	summary := events[len(events)-1]
	if summary["event"] != "summary" || int(summary["failovers"].(float64)) != failovers || failovers < 3 {
		t.Errorf("%d failovers, %v", failovers, summary)
	}
}

// Without a terminal the demonstration explains its output, and ends after four failovers.
func TestDemoInPipeEnds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	program, temporary := launchDemo(t, "--kill-every", "0.2")
	program.wantMatch(`^3 nodes on .*It ends after 4 failovers\.$`)
	last := ""
	for line, ok := program.line(); ok; line, ok = program.line() {
		last = line
	}
	if code := program.exit(); code != console.ExitDone || !strings.HasPrefix(last, "4 failovers: median ") {
		t.Errorf("exit code %d, last line %q", code, last)
	}
	awaitNothingLeft(t, temporary)
}

// After a signal, and also after a kill, nothing is left.
func TestInterruptedDemoLeavesNothing(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, test := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, console.ExitDone}, {syscall.SIGTERM, console.ExitDone}, {syscall.SIGKILL, -1}} {
		t.Run(test.signal.String(), func(t *testing.T) {
			t.Parallel()
			program, temporary := launchDemo(t)
			program.wantMatch(`^3 nodes on .*; the leader is killed every 5s, .* It ends after 4 failovers\.$`)
			if line, ok := program.line(); !ok || !strings.Contains(line, " leads term …") {
				t.Fatalf("%q; %s", line, program.log())
			}
			if len(descendants(t, temporary)) < 2+demo.Nodes { // itself, the nodes, the server
				t.Error("the processes of the demonstration are not found")
			}
			program.signal(test.signal)
			if code := program.exit(); code != test.code {
				t.Errorf("exit code %d: %s", code, program.log())
			}
			if test.signal != syscall.SIGKILL {
				if files, pids := left(t, temporary); len(files)+len(pids) > 0 {
					t.Errorf("left at the end: processes %v, files %v", pids, files)
				}
			}
			awaitNothingLeft(t, temporary)
		})
	}
}

// A node ends with its standard input, however the demonstration itself ends.
func TestDemoNodeEndsWithStandardInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := launch(t, place.with("demo-node", "-o", "json", "--role", "demo")...)
	node.await("acquired")
	if err := node.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	node.await("released")
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}
