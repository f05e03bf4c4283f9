package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/internal/testkit"
)

// patience bounds every wait for a process.
const patience = testkit.Patience

// environment returns the environment of a process: that of this process without the
// variables that name a database, and with the given ones. A program built with the
// race detector would sleep for a second before it ends.
func environment(more ...string) []string {
	kept := connect.WithoutLibpq(os.Environ())
	kept = slices.DeleteFunc(kept, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == settings.ConfigVariable || slices.Contains(connect.DSNVariables, name)
	})
	return append(append(kept, asProgram+"=1", "GORACE=atexit_sleep_ms=0"), more...)
}

// result is the output and the exit code of an ended process.
type result struct {
	stdout, stderr string
	code           int
}

// invoke runs the program to its end.
func invoke(t *testing.T, args ...string) result { t.Helper(); return invokeWith(t, nil, args...) }

// invokeWith is invoke with more environment variables.
func invokeWith(t *testing.T, variables []string, args ...string) result {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = environment(variables...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	limit := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
	defer limit.Stop()
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// want fails the test unless the process ended with this code.
func (r result) want(t *testing.T, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// decode reads the process's JSON.
func (r result) decode(t *testing.T, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, r.stdout)
	}
	if decoder.More() {
		t.Fatalf("more than one value: %s", r.stdout)
	}
}

// process is a process that runs.
type process struct {
	t       *testing.T
	command *exec.Cmd
	stdin   io.Closer
	lines   chan string // of standard output; closed at its end
	done    chan struct{}

	mu      sync.Mutex
	stderr  bytes.Buffer
	written chan struct{} // closed when there is more output on standard error
}

// launch starts the program; it is killed with the test.
func launch(t *testing.T, args ...string) *process { t.Helper(); return launchWith(t, nil, args...) }

// launchWith is launch with more environment variables.
func launchWith(t *testing.T, variables []string, args ...string) *process {
	t.Helper()
	return launchProgram(t, os.Args[0], variables, args...)
}

// launchProgram is launchWith for another executable than that of the test.
func launchProgram(t *testing.T, program string, variables []string, args ...string) *process {
	t.Helper()
	p := &process{
		t: t, command: exec.Command(program, args...), lines: make(chan string, 1000),
		done: make(chan struct{}), written: make(chan struct{}),
	}
	p.command.Env = environment(variables...)
	p.command.Stderr = p
	stdin, err := p.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
		close(p.lines)
		_ = p.command.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		for range p.lines { // no other goroutine reads them now
		}
		<-p.done
		if t.Failed() {
			t.Logf("%v wrote to standard error:\n%s", args, p.log())
		}
	})
	return p
}

// Write receives the standard error of the process.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.written)
	p.written = make(chan struct{})
	return p.stderr.Write(b)
}

// awaitLog waits until the process has written a text to standard error.
func (p *process) awaitLog(text string) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		found, written := strings.Contains(p.stderr.String(), text), p.written
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-written:
		case <-limit:
			p.t.Fatalf("no %q within %v in:\n%s", text, patience, p.log())
		}
	}
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *process) signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// line waits for the next line; ok is false at the end of output.
func (p *process) line() (line string, ok bool) {
	p.t.Helper()
	select {
	case line, ok = <-p.lines:
		return line, ok
	case <-time.After(patience):
		p.t.Fatalf("no line within %v; standard error:\n%s", patience, p.log())
		return "", false
	}
}

// event is an object that the process prints.
type event map[string]any

func (e event) term() int64 {
	number, _ := e["term"].(float64)
	return int64(number)
}

func (e event) time(t *testing.T) time.Time {
	t.Helper()
	text, _ := e["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatalf("the time of %v: %v", e, err)
	}
	return at
}

// next waits for the next event; ok is false at the end of output.
func (p *process) next() (e event, ok bool) {
	p.t.Helper()
	line, ok := p.line()
	if !ok {
		return nil, false
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		p.t.Fatalf("%v in %q", err, line)
	}
	return e, true
}

// longPatience bounds a wait during which the process prints other events.
const longPatience = 4 * patience

// await waits for an event of a kind and drops those before.
func (p *process) await(kind string) event {
	p.t.Helper()
	for limit := time.Now().Add(longPatience); ; {
		if time.Now().After(limit) {
			p.t.Fatalf("no %q within %v; standard error:\n%s", kind, longPatience, p.log())
		}
		e, ok := p.next()
		if !ok {
			p.t.Fatalf("ended without %q; standard error:\n%s", kind, p.log())
		}
		if e["event"] == kind {
			return e
		}
	}
}

// awaitAny waits until one of several processes prints an event of a kind.
func awaitAny(t *testing.T, kind string, processes ...*process) (*process, event) {
	t.Helper()
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(time.After(patience))}}
	for _, p := range processes {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.lines)})
	}
	for {
		chosen, value, ok := reflect.Select(cases)
		if chosen == 0 || !ok {
			t.Fatalf("no %q within %v, or a process ended", kind, patience)
		}
		var e event
		if err := json.Unmarshal([]byte(value.String()), &e); err != nil {
			t.Fatalf("%v in %q", err, value)
		}
		if e["event"] == kind {
			return processes[chosen-1], e
		}
	}
}

// rest returns all events until the process ends.
func (p *process) rest() []event {
	p.t.Helper()
	var events []event
	for {
		e, ok := p.next()
		if !ok {
			return events
		}
		events = append(events, e)
	}
}

// exit waits for the end of a process and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	for {
		if _, ok := p.line(); !ok {
			break
		}
	}
	testkit.Receive(p.t, p.done, patience, "the process does not end")
	return p.command.ProcessState.ExitCode()
}

// kinds lists the kinds of events, state changes as "from>to".
func kinds(events []event) []string {
	var list []string
	for _, e := range events {
		if e["event"] == "state_change" {
			list = append(list, e["from"].(string)+">"+e["to"].(string))
		} else {
			list = append(list, e["event"].(string))
		}
	}
	return list
}
