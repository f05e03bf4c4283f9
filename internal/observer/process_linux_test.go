package observer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait.
const patience = 60 * time.Second

// event is what a process prints, and when the observer read it.
type event struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Role  string    `json:"role"`
	Term  int64     `json:"term"`
	Node  string    `json:"node"` // its id
	seen  time.Time
}

// process is a program that runs, and all that it wrote.
type process struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	started time.Time
	ended   chan struct{}

	mu      sync.Mutex
	events  []event
	log     bytes.Buffer
	changed chan struct{} // closed at the next output
}

// environment is that of this process without what would select a database or a configuration.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "PG") || strings.HasPrefix(entry, "TENURE_") || strings.HasPrefix(entry, "DATABASE_URL=")
	})
}

// launch starts a program, which is killed with the test.
func launch(t *testing.T, name, program string, variables []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, command: exec.Command(program, args...), ended: make(chan struct{}), changed: make(chan struct{})}
	p.command.Env = append(environment(), variables...)
	p.command.Stderr = p
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.started = time.Now()
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(bufio.NewScanner(stdout)) // exits with the process; the cleanup waits
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote to standard error:\n%s", name, p.text())
		}
	})
	return p
}

func (p *process) read(lines *bufio.Scanner) {
	defer close(p.ended)
	for lines.Scan() {
		e := event{seen: time.Now()}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		p.change(func() { p.events = append(p.events, e) })
	}
	_ = p.command.Wait() // the state says how it ended
}

// change changes what was written, and wakes those that wait for it.
func (p *process) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Write receives the standard error.
func (p *process) Write(b []byte) (int, error) {
	p.change(func() { p.log.Write(b) })
	return len(b), nil
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// until waits until found returns true; it is called after each output, with the mutex held.
func (p *process) until(what string, found func() bool) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		ok, changed := found(), p.changed
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			p.t.Fatalf("%s: no %s within %v in:\n%s", p.name, what, patience, p.text())
		}
	}
}

// await returns the first event of a kind of a role after a moment.
func (p *process) await(kind, role string, after time.Time) (found event) {
	p.t.Helper()
	p.until(kind+" of "+role, func() bool {
		i := slices.IndexFunc(p.events, func(e event) bool { return e.Event == kind && e.Role == role && e.seen.After(after) })
		if i >= 0 {
			found = p.events[i]
		}
		return i >= 0
	})
	return found
}

// leads returns the first term of a role.
func (p *process) leads(role string) event {
	p.t.Helper()
	return p.await("acquired", role, time.Time{})
}

// logs waits for a text on standard error.
func (p *process) logs(text string) {
	p.t.Helper()
	p.until(text, func() bool { return strings.Contains(p.log.String(), text) })
}

func (p *process) signal(s syscall.Signal) { _ = p.command.Process.Signal(s) }

// span is between when something was caused and when it was known to have happened.
type span struct{ from, to time.Time }

// kill ends a process with SIGKILL and returns when it ended.
func (p *process) kill() span {
	s := span{from: time.Now()}
	p.signal(syscall.SIGKILL)
	<-p.ended
	s.to = time.Now()
	return s
}

// stop ends a process with SIGTERM and returns when it ended and its exit code.
func (p *process) stop() (s span, code int) {
	p.t.Helper()
	s = span{from: time.Now()}
	p.signal(syscall.SIGTERM)
	code = p.exit(&s)
	return s, code
}

// exit waits for the end and returns the exit code.
func (p *process) exit(s *span) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end:\n%s", p.name, p.text())
	}
	s.to = time.Now()
	return p.command.ProcessState.ExitCode()
}

func program(name string) string { return filepath.Join(programs, name) }
