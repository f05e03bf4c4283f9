package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// guarded is the command line that runs a shell script while leading.
func (p place) guarded(script string, flags ...string) []string {
	return append(append(p.with("run", "--role", "billing"), flags...), "--", "sh", "-c", script)
}

// The test checks the program's exit code after its command has ended without a
// signal. Only the command writes to standard output.
func TestExitCodeFollowsCommand(t *testing.T) {
	t.Parallel()
	twice := `n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; echo run $n; `
	for _, test := range []struct {
		name   string
		flags  []string
		script string
		code   int
		output string
	}{
		{"success", nil, twice + `exit 0`, 0, "run 0\n"},
		{"success in the end", nil, twice + `test $n = 2`, 0, "run 0\nrun 1\nrun 2\n"},
		{"failure", []string{"--restart", "never"}, twice + `exit 7`, 7, "run 0\n"},
		{"signal", []string{"--restart", "never"}, `kill -KILL $$`, 128 + 9, ""},
		{"always", []string{"--restart", "always"}, twice + `test $n = 1 && kill -TERM $(cat supervisor); exit 0`, 0, "run 0\nrun 1\n"},
		{"once", []string{"--once"}, twice + `exit 3`, 3, "run 0\n"},
		{"once, never", []string{"--once", "--restart", "never"}, twice, 0, "run 0\n"},
		{"not a program", nil, "", console.ExitNotExecutable, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			script := "cd " + folder + "; " + test.script
			args := newPlace(t).guarded(script, test.flags...)
			if test.name == "not a program" {
				garbage := filepath.Join(folder, "garbage")
				if err := os.WriteFile(garbage, []byte("no program"), 0o700); err != nil {
					t.Fatal(err)
				}
				args = append(args[:slices.Index(args, "--")], "--restart", "never", "--", garbage)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			// The supervisor replaces the shell and keeps its process id.
			command := exec.CommandContext(ctx, "sh", append([]string{"-c", `echo $$ > "$0"/supervisor; exec "$@"`, folder, os.Args[0]}, args...)...)
			command.Env = environment()
			var output, log bytes.Buffer
			command.Stdout, command.Stderr = &output, &log
			_ = command.Run() // the code says how it ended
			if code := command.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d; log:\n%s", code, test.code, &log)
			}
			if output.String() != test.output {
				t.Errorf("output %q, want %q", &output, test.output)
			}
		})
	}
}

// The command receives the same signal that asks the program to end; the
// command's exit code then does not matter.
func TestTerminationSignalIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			script := `trap 'echo terminated; exit 9' TERM; trap 'echo interrupt; exit 9' INT; echo ready; while :; do sleep 0.1; done`
			node := launch(t, newPlace(t).guarded(script)...)
			node.want("ready")
			node.signal(signal)
			node.want(signal.String())
			if code := node.exit(); code != console.ExitDone {
				t.Errorf("exit code %d", code)
			}
			if log := node.log(); !strings.Contains(log, "msg=released") {
				t.Errorf("the role was not released:\n%s", log)
			}
		})
	}
}

// Exit code 0 of a command that is to run once means that it has done its work: no signal to
// the program leads to it, neither before the command runs nor while it does.
func TestInterruptedCommandIsNotDone(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	leader := launch(t, place.guarded(`trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done`, "--once")...)
	leader.want("ready")
	waiting := launch(t, place.guarded("echo leads", "--once")...)
	waiting.awaitLog("session opened")
	for _, node := range []*process{waiting, leader} {
		node.signal(syscall.SIGTERM)
		if code := node.exit(); code != console.ExitNotAcquired {
			t.Errorf("exit code %d, want %d; log:\n%s", code, console.ExitNotAcquired, node.log())
		}
		if log := node.log(); !strings.Contains(log, "tenure: interrupted before the command was done") {
			t.Errorf("the log does not say that the command was not done:\n%s", log)
		}
	}
}

// want waits for a line.
func (p *process) want(line string) {
	p.t.Helper()
	if got, _ := p.line(); got != line {
		p.t.Fatalf("line %q, want %q; log:\n%s", got, line, p.log())
	}
}

// wantTerm reads a line with the number of a term that is larger than another, and
// returns it.
func (p *process) wantTerm(last int64) (number int64) {
	p.t.Helper()
	line, _ := p.line()
	if _, err := fmt.Sscanf(line, "term %d", &number); err != nil || number <= last {
		p.t.Fatalf("line %q, want a term after %d; log:\n%s", line, last, p.log())
	}
	return number
}

// wantMatch reads a line that matches a pattern.
func (p *process) wantMatch(pattern string) {
	p.t.Helper()
	if line, _ := p.line(); !regexp.MustCompile(pattern).MatchString(line) {
		p.t.Fatalf("line %q, want %s; log:\n%s", line, pattern, p.log())
	}
}

// The command's environment has its term and its node, and the connection
// string only if a flag asks for it.
func TestCommandEnvironmentHasItsTerm(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	show := `echo $TENURE_ROLE $TENURE_TERM $TENURE_NODE_NAME ${#TENURE_NODE} ${TENURE_DSN-none}`
	node := launchWith(t, []string{"TENURE_ROLE=other"}, place.guarded(show, "--name", "one")...)
	node.wantMatch(`^billing \d{13} one 36 none$`)
	node = launch(t, place.guarded(show, "--name", "one", "--pass-dsn")...)
	node.wantMatch(`^billing \d{13} one 36 ` + regexp.QuoteMeta(place.server.DSN()) + "$")
	node = launchWith(t, []string{"TENURE_DSN=" + place.server.DSN()}, "run", "--role", "billing", "--schema", place.schema, "--", "sh", "-c", `echo ${TENURE_DSN-none}`)
	node.want("none")
	others := `env | grep -c -e ^DATABASE_URL= -e ^PG`
	variables := []string{"DATABASE_URL=" + place.server.DSN(), "PG_DSN=x", "PGPASSWORD=x", "PGHOST=x"}
	launchWith(t, variables, place.guarded(others)...).want("0")
	launchWith(t, variables, place.guarded(others, "--pass-dsn")...).want("4")
}

// The command reads the program's standard input.
func TestCommandReadsStandardInput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], newPlace(t).guarded("tr a-z A-Z")...)
	command.Env, command.Stdin = environment(), strings.NewReader("one\ntwo\n")
	output, err := command.Output()
	if err != nil || string(output) != "ONE\nTWO\n" {
		t.Errorf("%q, %v", output, err)
	}
}

// If another node leads, the program ends with the configured exit code;
// otherwise it leads.
func TestNoLeaderExitReturnsItsCode(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	leader := launch(t, place.guarded("echo leads; exec sleep 600", "--no-leader-exit", "9")...)
	leader.want("leads")
	for _, code := range []string{"0", "75"} {
		got := invoke(t, place.guarded("echo leads", "--once", "--no-leader-exit", code)...)
		if got.stdout != "" || got.code != map[string]int{"0": 0, "75": 75}[code] {
			t.Errorf("%+v", got)
		}
	}
}

// The command is asked to end, the role is released, and the other node's
// command starts.
func TestStepDownMovesCommand(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	script := `trap 'echo stopping; exit' TERM; echo term $TENURE_TERM; while :; do sleep 0.1; done`
	first := launch(t, place.guarded(script)...)
	led := first.wantTerm(0)
	second := launch(t, place.guarded(script)...)
	second.awaitLog("session opened")
	invoke(t, place.with("step-down", "--role", "billing")...).want(t, console.ExitDone)
	first.want("stopping")
	second.wantTerm(led)
}

// When the server ends the session, the command is killed without being asked
// to end, and runs again in the next term; a command that is to run once does
// not.
func TestLostCommandIsKilled(t *testing.T) {
	t.Parallel()
	script := `trap 'echo asked' TERM; echo term $TENURE_TERM; while :; do sleep 0.1; done`
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		place := newPlace(t)
		node := launch(t, place.guarded(script)...)
		led := node.wantTerm(0)
		place.terminate(t, "billing")
		node.wantTerm(led)
	})
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		place := newPlace(t)
		node := launch(t, place.guarded(script, "--once")...)
		node.wantTerm(0)
		place.terminate(t, "billing")
		if code := node.exit(); code != console.ExitNotAcquired {
			t.Errorf("exit code %d", code)
		}
		if !strings.Contains(node.log(), "tenure: the term ended before the command did") {
			t.Error(node.log())
		}
	})
}

// A killed supervisor's command dies with it. The lease reserves the role until
// it expires, and then another node leads.
func TestCommandDiesWithSupervisorOnLeases(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	args := []string{"run", "--role", "billing", "--dsn", dsn, "--lease", "10s", "--", "sh", "-c", `echo term $TENURE_TERM; exec sleep 600`}
	first := launch(t, args...)
	led := first.wantTerm(0)
	second := launch(t, args...)
	second.awaitLog("session opened")
	first.signal(syscall.SIGKILL)
	killed := time.Now()
	if line, more := first.line(); more { // the command held it open
		t.Error(line)
	}
	if died := time.Since(killed); died > 5*time.Second { // its guardian would kill it when trust ends
		t.Errorf("the command lived for %v", died)
	}
	second.wantTerm(led)
}

// A command that cannot be run is reported before the program connects.
func TestMissingCommandIsReportedBeforeConnecting(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		command string
		code    int
		want    string
	}{
		{"no-such-command", console.ExitNotFound, `the command "no-such-command" does not exist`},
		{"/nowhere/at/all", console.ExitNotFound, "does not exist"},
		{file, console.ExitNotExecutable, "is not executable"},
		{filepath.Dir(file), console.ExitNotExecutable, "is not executable"},
	} {
		got := invoke(t, "run", "--role", "billing", "--dsn", "postgres://127.0.0.1:1/db", "--", test.command).want(t, test.code)
		if !strings.Contains(got.stderr, test.want) || strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
			t.Errorf("%+v", got)
		}
	}
}

// Of ten programs that are started at the same time, as by a clock, one runs
// its command, and the others end successfully.
func TestOnlyOneOfTenRunsItsCommand(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	var nodes []*process
	for range 10 {
		nodes = append(nodes, launch(t, place.guarded("echo ran; sleep 3", "--once", "--no-leader-exit", "0")...))
	}
	ran := 0
	for _, node := range nodes {
		for line, more := node.line(); more; line, more = node.line() {
			if line == "ran" {
				ran++
			}
		}
		if code := node.exit(); code != console.ExitDone {
			t.Errorf("exit code %d: %s", code, node.log())
		}
	}
	if ran != 1 {
		t.Errorf("the command ran %d times", ran)
	}
}
