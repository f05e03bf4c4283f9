package cli

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// launchUnread starts the program. No process reads its standard error, which is a
// pipe. It returns the lines of its standard output.
func launchUnread(t *testing.T, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0], args...)
	program.Env, program.Stderr = environment(), writer
	output, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	_, _ = reader.Close(), writer.Close()
	if err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = program.Process.Kill() })
	t.Cleanup(func() { limit.Stop() })
	return program, bufio.NewScanner(output)
}

// A program that writes to a pipe without a reader gets SIGPIPE, which kills it. The log
// of a node is worth less than its roles.
func TestClosedLogEndsNoProgram(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, 0) // a proxy creates no tables
	tick := place.schedules(t, `name = "tick"`+"\n"+`schedule = "* * * * * *"`+"\n"+`command = "echo ticks"`)
	for name, test := range map[string]struct {
		args []string
		long bool
		line string // of standard output
	}{
		"run":     {args: place.guarded("echo leads; exec sleep 1000", "--log-level", "debug"), line: "leads"},
		"serve":   {args: place.with("serve", "--listen", ":0", "--log-level", "debug"), line: "http"},
		"proxy":   {args: place.with("proxy", "--role", "billing", "--listen", ":0", "--to-port", "9", "--log-level", "debug"), line: "forwarding"},
		"acquire": {args: place.with("acquire", "--role", "other", "--hold", "--log-level", "debug"), line: "acquired"},
		"cron":    {args: []string{"cron", "run", "--config", tick, "--role", "jobs"}, long: true, line: "ticks"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.long {
				pgtest.Long(t)
			}
			t.Parallel()
			program, lines := launchUnread(t, test.args...)
			if !lines.Scan() || !strings.Contains(lines.Text(), test.line) {
				t.Errorf("the first line of output is %q, want %q", lines.Text(), test.line)
			}
			_ = program.Process.Signal(syscall.SIGTERM) // it may have ended
			for lines.Scan() {                          // until it has ended
			}
			_ = program.Wait() // the state says how it ended
			if !program.ProcessState.Success() {
				t.Errorf("a program whose log has no reader ended with %v, want exit status 0", program.ProcessState)
			}
		})
	}
}

// An agent keeps its nodes if its log has no reader.
func TestClosedLogEndsNoAgent(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	agent, _ := launchUnread(t, newPlace(t).with("agent", "--socket", path)...)
	node := launch(t, "run", "--agent", path, "--role", "billing", "--", "sh", "-c", "echo leads; exec sleep 1000")
	node.want("leads")
	_ = agent.Process.Signal(syscall.SIGTERM)
	_ = agent.Wait() // the state says how it ended
	if !agent.ProcessState.Success() {
		t.Errorf("an agent whose log has no reader ended with %v, want exit status 0", agent.ProcessState)
	}
}

// A node whose events have no reader keeps its role.
func TestClosedOutputEndsNoNode(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	node := exec.Command(os.Args[0], newPlace(t).with("run", "--role", "billing")...)
	node.Env, node.Stdout = environment(), writer
	log, err := node.StderrPipe()
	if err == nil {
		err = node.Start()
	}
	_ = writer.Close()
	if err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = node.Process.Kill() })
	defer limit.Stop()
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "an event could not be printed") {
	}
	_ = node.Process.Signal(syscall.SIGTERM) // it may have ended
	for lines.Scan() {                       // until it has ended
	}
	_ = node.Wait() // the state says how it ended
	if !node.ProcessState.Success() {
		t.Errorf("a node whose output has no reader ended with %v, want exit status 0", node.ProcessState)
	}
}
