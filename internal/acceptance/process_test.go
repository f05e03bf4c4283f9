package acceptance_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a node in a separate process: this test program again.
type process struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{} // closed at the end of its output

	mu      sync.Mutex
	news    chan struct{} // closed at the next report
	reports []report
}

// spawn starts a child and waits until it campaigns for its roles; before is put in
// front of its command line. The child is killed with the test.
func spawn(t *testing.T, kind string, o order, before ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	line := slices.Concat(before, []string{self})
	p := &process{t: t, name: o.Name, command: exec.Command(line[0], line[1:]...), ended: make(chan struct{}), news: make(chan struct{})}
	p.command.Env = append(os.Environ(), childVariable+"="+kind, orderVariable+"="+string(told))
	p.command.Stderr = os.Stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(stdout)
	t.Cleanup(p.kill)
	p.await("ready", time.Time{})
	return p
}

func (p *process) read(stdout io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // of the test framework
		}
		p.mu.Lock()
		p.reports = append(p.reports, r)
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
}

// await waits for a report of a kind since a moment.
func (p *process) await(kind string, since time.Time) report {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		news, reports := p.news, p.reports
		p.mu.Unlock()
		for _, r := range reports {
			if r.Kind == kind && r.At >= since.UnixNano() {
				return r
			}
		}
		select {
		case <-news:
		case <-p.ended:
			p.t.Fatalf("%s ended without reporting %q", p.name, kind)
		case <-limit:
			p.t.Fatalf("%s did not report %q", p.name, kind)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v: %v", p.name, s, err)
	}
}

// say sends a line to the child's standard input.
func (p *process) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// kill ends the child; also when it is stopped or has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
	_ = p.command.Wait() // it reports the signal
}
