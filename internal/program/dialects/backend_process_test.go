package dialects

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/testkit"
)

// process runs this test's program as a separate node.
type process struct {
	t       testing.TB
	name    string
	record  string
	command *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{} // closed at the end of its output
	died    func()

	mu      sync.Mutex
	changed chan struct{} // closed at the next report
	reports []report
}

// spawn starts a child and waits until it is a candidate. It is killed when the test ends.
func (c *cluster) spawn(kind, name string) *process {
	c.t.Helper()
	p := c.launch(kind, name)
	p.await("ready")
	return p
}

// launch starts a child.
func (c *cluster) launch(kind, name string) *process {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	env, died := c.steps.Child()
	p := &process{
		died: died, t: c.t, name: name, record: filepath.Join(c.t.TempDir(), "periods"), command: exec.Command(self),
		ended: make(chan struct{}), changed: make(chan struct{}),
	}
	settings, err := json.Marshal(order{
		Driver: c.kind.driver, Source: c.source, Dialect: c.kind.dialect, Name: name, Lease: c.config.Lease, Record: p.record,
		Mounted: c.mounted,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	p.command.Env = append(append(os.Environ(), env...), childVariable+"="+kind, orderVariable+"="+string(settings), "GORACE=atexit_sleep_ms=0")
	p.command.Stderr = os.Stderr
	p.command.SysProcAttr = childAttributes(kind == childFills || kind == childMounts)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	go p.read(stdout)
	c.t.Cleanup(p.kill)
	return p
}

func (p *process) read(stdout io.Reader) {
	defer close(p.ended)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // of the test framework
		}
		p.mu.Lock()
		p.reports = append(p.reports, r)
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

// await waits for the first report of one of the kinds.
func (p *process) await(kinds ...string) report {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		changed, reports := p.changed, p.reports
		p.mu.Unlock()
		for _, r := range reports {
			if slices.Contains(kinds, r.Kind) {
				return r
			}
		}
		select {
		case <-changed:
		case <-p.ended:
			p.t.Fatalf("%s ended without reporting %q; it logged\n%s", p.name, kinds, p.logged())
		case <-limit:
			p.t.Fatalf("%s did not report %q; it logged\n%s", p.name, kinds, p.logged())
		}
	}
}

// logged returns the end of the child's log.
func (p *process) logged() []byte {
	text, _ := os.ReadFile(logOf(p.record)) // a child that logs nothing has none
	return text[max(len(text)-4000, 0):]
}

// all returns the reports of a kind so far.
func (p *process) all(kind string) (found []report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reports {
		if r.Kind == kind {
			found = append(found, r)
		}
	}
	return found
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v: %v", p.name, s, err)
	}
}

// resume sends a line to the child's standard input.
func (p *process) resume() {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// kill kills the child, even if it is paused or has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
	_ = p.command.Wait() // it reports the signal
	p.died()
}

// periods returns the times during which the child treated its terms as valid.
func (p *process) periods() []period {
	p.t.Helper()
	periods, err := readPeriods(p.record)
	if err != nil {
		p.t.Fatal(err)
	}
	return periods
}

// awaitHeartbeat returns just after a heartbeat of the cluster's only node.
func (c *cluster) awaitHeartbeat() {
	c.t.Helper()
	db := c.kind.connect(c.t, c.source)
	const last = "SELECT max(last_heartbeat) FROM tenure_lease_sessions WHERE ended_at IS NULL"
	before := value(c.t, db, last)
	testkit.Await(c.t, "a heartbeat", func() bool { return value(c.t, db, last) != before })
}

// pause stops a process while it is in no transaction, and returns when. A process that
// is paused in a transaction keeps a SQLite file locked, whatever its lease.
func (c *cluster) pause(p *process) time.Time {
	c.t.Helper()
	conn, err := c.kind.connect(c.t, c.source).Conn(soon(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	for limit := time.Now().Add(patience); time.Now().Before(limit); p.signal(sandbox.ResumeSignal) {
		p.signal(sandbox.PauseSignal)
		stopped := time.Now()
		if c.kind.name != sqliteKind.name {
			return stopped
		}
		_, err = conn.ExecContext(soon(c.t), "PRAGMA busy_timeout = 200; BEGIN IMMEDIATE; ROLLBACK")
		if err == nil {
			return stopped
		}
	}
	c.t.Fatalf("the process is in a transaction whenever it is paused: %v", err)
	return time.Time{}
}
