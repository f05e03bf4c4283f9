package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// limit bounds one suite: it is for hangs, not for slow machines.
const limit = 30 * time.Minute

// cleanUp bounds how long the caretakers of killed tests need to end their servers.
const cleanUp = 20 * time.Second

// runner builds and runs the binaries of tests.
type runner struct {
	scratch   string            // for the binaries
	temporary string            // for the temporary files of the tests
	binaries  map[string]string // by module and folder
}

func newRunner() (*runner, error) {
	scratch, err := os.MkdirTemp("", "tenure-matrix-")
	if err != nil {
		return nil, err
	}
	r := &runner{scratch: scratch, temporary: filepath.Join(scratch, "tmp"), binaries: map[string]string{}}
	if err := errors.Join(os.Chmod(scratch, 0o711), os.Mkdir(r.temporary, 0o755)); err != nil { // servers of other accounts run there
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return r, nil
}

// close removes all files. Tests that were killed leave theirs, and caretakers, which
// end the servers and need the files of them to do so.
func (r *runner) close() error {
	for until := time.Now().Add(cleanUp); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if left, err := filepath.Glob(filepath.Join(r.temporary, "tenure-*")); err != nil || len(left) == 0 {
			break
		}
	}
	return os.RemoveAll(r.scratch)
}

// build returns the test binary of a suite's package.
func (r *runner) build(ctx context.Context, u suite) (string, error) {
	key := u.module + "/" + u.folder
	if binary, ok := r.binaries[key]; ok {
		return binary, nil
	}
	binary := filepath.Join(r.scratch, strings.NewReplacer("/", "_", ".", "_").Replace(key)+".test")
	command := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./"+u.folder)
	command.Dir = u.module
	command.Env = append(os.Environ(), "GOTMPDIR="+r.scratch)
	interruptible(command)
	if text, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	r.binaries[key] = binary
	return binary, nil
}

// run runs a suite and counts its tests. The binary runs without the go command
// around it, so that it ends with the context.
func (r *runner) run(ctx context.Context, u suite, environment []string) (result, error) {
	binary, err := r.build(ctx, u)
	if err != nil {
		return result{}, err
	}
	arguments := []string{"-test.v=test2json", "-test.timeout", limit.String(), "-test.run", u.run, "-test.skip", u.skip}
	if !u.long {
		arguments = append(arguments, "-test.parallel", "8") // most tests wait
	}
	command := r.command(ctx, u, binary, arguments)
	command.Env = append(command.Env, environment...)
	read, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	converter := exec.CommandContext(context.WithoutCancel(ctx), "go", "tool", "test2json")
	converter.Stdin = read
	var events bytes.Buffer
	converter.Stdout, converter.Stderr = &events, os.Stderr
	if err := converter.Start(); err != nil {
		return result{}, err
	}
	failed := command.Run()
	err = errors.Join(write.Close(), converter.Wait())
	if ctx.Err() != nil || err != nil {
		return result{}, errors.Join(context.Cause(ctx), err)
	}
	counted, outputs, err := count(&events, u.count)
	switch {
	case err != nil:
		return counted, err
	case failed != nil && counted.failed == 0 && len(outputs) == 1:
		return counted, fmt.Errorf("%s: %w\n%s", binary, failed, outputs[""])
	case failed != nil:
		counted.failed = max(counted.failed, 1) // a test with subtests can fail alone
	case counted.passed == 0 && counted.failed == 0:
		return counted, errors.New("no test ran")
	}
	for name, text := range outputs {
		if name != "" {
			fmt.Printf("--- %s\n%s", name, text)
		}
	}
	return counted, nil
}

// command is a test binary with its arguments. It ends with the context, together with
// the processes that it has started.
func (r *runner) command(ctx context.Context, u suite, binary string, arguments []string) *exec.Cmd {
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Dir = filepath.Join(u.module, u.folder)
	command.Env = append(os.Environ(), "TMPDIR="+r.temporary)
	endWithDescendants(command)
	command.WaitDelay = 10 * time.Second
	return command
}

// runTests runs the tests of a suite's package with flags of go test, and shows what they
// print.
func (r *runner) runTests(ctx context.Context, u suite, arguments []string) error {
	binary, err := r.build(ctx, u)
	if err != nil {
		return err
	}
	command := r.command(ctx, u, binary, testFlags(arguments))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	err = command.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// testFlags returns flags of go test as a test binary has them: -v is -test.v.
func testFlags(arguments []string) []string {
	var all []string
	for _, argument := range arguments {
		if name, found := strings.CutPrefix(argument, "-"); found && !strings.HasPrefix(name, "test.") {
			argument = "-test." + strings.TrimPrefix(name, "-")
		}
		all = append(all, argument)
	}
	return all
}

// interruptible makes a command's context interrupt the command, which then removes its
// temporary files, instead of killing it.
func interruptible(command *exec.Cmd) {
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
}

// result is how many tests of a suite ended in which way.
type result struct{ passed, failed, skipped int }

// String is the result as a cell of the table.
func (r result) String() string {
	text := fmt.Sprintf("%d", r.passed)
	if r.failed > 0 {
		text += fmt.Sprintf(", **%d failed**", r.failed)
	}
	if r.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.skipped)
	}
	return text
}

// event is a line of test2json.
type event struct{ Action, Test, Output string }

// count counts the tests that have no subtests, and returns the output of those
// that failed, and of the binary under the empty name.
func count(events io.Reader, only string) (result, map[string]string, error) {
	actions, outputs, parents := map[string]string{}, map[string]string{}, map[string]bool{}
	lines := bufio.NewReader(events)
	for decoder := json.NewDecoder(lines); ; {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return result{}, nil, err
		}
		switch e.Action {
		case "output":
			outputs[e.Test] += e.Output
		case "run":
			actions[e.Test] = "fail" // until it ends: a binary that crashes ends none
			if at := strings.LastIndexByte(e.Test, '/'); at >= 0 {
				parents[e.Test[:at]] = true
			}
		case "pass", "fail", "skip":
			if e.Test != "" {
				actions[e.Test] = e.Action
			}
		}
	}
	var r result
	failures := map[string]string{"": outputs[""]}
	for name, action := range actions {
		if action == "fail" {
			failures[name] = outputs[name]
		}
		if parents[name] || action != "fail" && !strings.Contains(name, only) {
			continue // a failure counts in any case
		}
		switch action {
		case "pass":
			r.passed++
		case "skip":
			r.skipped++
		default:
			r.failed++
		}
	}
	return r, failures, nil
}
