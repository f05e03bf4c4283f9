package outboxtest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// process is a child, as its parent sees it.
type process struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	stdin   io.Closer
	ended   chan struct{} // closed at the end of its output

	mu   sync.Mutex
	last report
}

// spawn starts a child, which is killed with the test. Every report also sends the
// child to news.
func spawn(t *testing.T, o order, news chan<- *process) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: o.Name, command: exec.Command(self), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), variable+"="+string(told))
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
	go p.read(stdout, news)
	t.Cleanup(p.kill)
	return p
}

func (p *process) read(stdout io.Reader, news chan<- *process) {
	defer close(p.ended)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // of the test framework
		}
		p.mu.Lock()
		p.last = r
		p.mu.Unlock()
		select {
		case news <- p:
		default: // nobody waits
		}
	}
}

func (p *process) reported() report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatalf("%v: %v", s, err)
	}
}

// kill ends the child, also when it is stopped or has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
	_ = p.command.Wait() // it reports the signal
}
