//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// socketPath returns the path of a socket in its own directory. The path of a
// socket is limited to 107 bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // the system cleans up the rest
	return filepath.Join(folder, "socket")
}

// Nodes of an agent need no connection to the database. When the leader is killed, its
// command ends and that of another node starts.
func TestCommandsCampaignThroughAgent(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	agent := launch(t, newPlace(t).with("agent", "--socket", path)...)
	agent.awaitLog("the agent is ready")
	start := func(name string) *process {
		return launch(t, "run", "--agent", path, "--role", "billing", "--name", name, "--", "sh", "-c", "echo $TENURE_TERM; exec sleep 1000")
	}
	first := start("first")
	term, ok := first.line()
	if !ok {
		t.Fatalf("the first node does not lead: %s", first.log())
	}
	second := start("second")
	second.awaitLog("session opened")
	killed := time.Now()
	first.signal(syscall.SIGKILL)
	next, ok := second.line()
	if !ok || next <= term {
		t.Fatalf("after term %s: got term %q: %s", term, next, second.log())
	}
	t.Logf("the next command started %v after SIGKILL", time.Since(killed))
	second.signal(syscall.SIGTERM)
	if code := second.exit(); code != console.ExitDone {
		t.Errorf("the node's exit code is %d", code)
	}
	agent.signal(syscall.SIGTERM)
	if code := agent.exit(); code != console.ExitDone {
		t.Errorf("the agent's exit code is %d", code)
	}
}

// A node whose command needs longer to end than the agent's trust lasts would lead and
// never start the command.
func TestAgentRefusesCommandWithLongGrace(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	launch(t, newPlace(t).with("agent", "--socket", path)...).awaitLog("the agent is ready")
	run := func(grace string) result {
		return invoke(t, "run", "--agent", path, "--role", "billing", "--lease", "1m", "--refresh", "1s", "--grace", grace, "--", "echo", "ran")
	}
	if got := run("4s").want(t, console.ExitDone); got.stdout != "ran\n" {
		t.Errorf("with a grace that fits, the command wrote %q", got.stdout)
	}
	if got := run("15s").want(t, console.ExitUsage); !strings.Contains(got.stderr, "give the agent a longer lease") {
		t.Errorf("with a grace that does not fit: %s", got.stderr)
	}
}

func TestAgentRejectsBadFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		newPlace(t).with("agent"),
		newPlace(t).with("agent", "--socket", "/proc/none/socket"),
		{"run", "--agent", "/none", "--role", "r", "--min-nodes", "2"},
		{"run", "--agent", "/none", "--role", "r", "--unique-names"},
		{"run", "--agent", "/" + strings.Repeat("x", 200), "--role", "r", "--", "true"},
	} {
		if r := invoke(t, args...).want(t, console.ExitUsage); strings.Contains(r.stderr, "panic") {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
}
