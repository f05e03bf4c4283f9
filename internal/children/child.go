package children

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// patience bounds every wait for a report.
const patience = 60 * time.Second

// Options say how a child is started.
type Options struct {
	// Name is for messages.
	Name string
	// Before is put in front of the command line, such as the words that run it in
	// a network namespace.
	Before []string
	// Args are the arguments of this program.
	Args []string
	// Env is added to the environment.
	Env []string
	// Stderr is where the child's standard error goes; nil means that of this
	// process.
	Stderr io.Writer
	// Note gets every report, one after another, before anything waits for it. If it
	// returns false, the report is not kept: [Child.Await] does not find it. May be nil.
	Note func(Report) (keep bool)
	// Ended is called when Kill finds that the process has ended. May be nil.
	Ended func()
	// Writes gets the reports of [Write], which are not kept. May be nil.
	Writes *Writes
}

// Child is a process that runs this program. It ends with this process, at the
// latest. Its methods may be called from several goroutines.
type Child struct {
	Name string

	note    func(Report) bool
	writes  *Writes
	onEnd   func()
	process *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{} // closed at the end of its output
	reap    sync.Once

	mu      sync.Mutex
	changed chan struct{} // closed at the next report
	reports []Report
	leads   []Interval
	leading time.Time // since when, or zero
}

// Start starts a child. An interrupt at the terminal does not reach it.
func Start(o Options) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line := slices.Concat(o.Before, []string{self}, o.Args)
	c := &Child{
		Name: o.Name, note: o.Note, writes: o.Writes, onEnd: o.Ended, process: exec.Command(line[0], line[1:]...),
		ended: make(chan struct{}), changed: make(chan struct{}),
	}
	c.process.Env = append(os.Environ(), o.Env...)
	c.process.Stderr = os.Stderr
	if o.Stderr != nil {
		c.process.Stderr = o.Stderr
	}
	c.process.SysProcAttr = EndsWithParent()
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	go c.read(stdout) // it ends with the child; Kill waits for it
	return c, nil
}

func (c *Child) read(stdout io.Reader) {
	defer close(c.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // of a test framework
		}
		keep := !c.writes.note(c, r) && (c.note == nil || c.note(r))
		c.mu.Lock()
		switch r.Kind {
		case "lead":
			c.leading = r.Time()
		case "follow":
			c.leads = append(c.leads, Interval{c.leading, time.Unix(0, r.Last)})
			c.leading = time.Time{}
		}
		if keep {
			c.reports = append(c.reports, r)
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

// Find returns the first report of a kind since a moment.
func (c *Child) Find(kind string, since time.Time) (Report, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.reports, func(r Report) bool { return r.Kind == kind && r.At >= since.UnixNano() })
	if i < 0 {
		return Report{}, false
	}
	return c.reports[i], true
}

// Gap returns the longest time between two looks of [Watch] that began in an interval, of
// those that the child has reported.
func (c *Child) Gap(during Interval) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := time.Duration(0)
	for _, r := range c.reports {
		if last := time.Unix(0, r.Last); r.Kind == "gap" && last.After(during.From) && last.Before(during.To) {
			longest = max(longest, r.Time().Sub(last))
		}
	}
	return longest
}

// Await waits for a report of a kind since a moment.
func (c *Child) Await(ctx context.Context, kind string, since time.Time) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if r, found := c.Find(kind, since); found {
			return r, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			return Report{}, fmt.Errorf("%s ended without reporting %q", c.Name, kind)
		case <-ctx.Done():
			return Report{}, fmt.Errorf("%s did not report %q: %w", c.Name, kind, context.Cause(ctx))
		}
	}
}

// Leading reports whether the child said last that it leads.
func (c *Child) Leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.leading.IsZero()
}

// Leads lists when the child said that it leads, until now.
func (c *Child) Leads() []Interval {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.leads)
	if !c.leading.IsZero() {
		all = append(all, Interval{c.leading, now})
	}
	return all
}

// Say sends a line to the child's standard input.
func (c *Child) Say(line string) error {
	_, err := io.WriteString(c.stdin, line+"\n")
	return err
}

// EndInput closes the child's standard input.
func (c *Child) EndInput() error { return c.stdin.Close() }

// Signal sends a signal to the child.
func (c *Child) Signal(signal os.Signal) error { return c.process.Process.Signal(signal) }

// Stop stops the child until it is continued or killed. On Linux, no thread of it runs
// when Stop returns.
func (c *Child) Stop() error {
	if err := c.Signal(sandbox.PauseSignal); err != nil {
		return err
	}
	return awaitStop(c.PID())
}

// PID returns the child's process id.
func (c *Child) PID() int { return c.process.Process.Pid }

// Ended is closed when the child has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Kill ends the child, also one that is stopped or has ended, and waits for that.
// It leads no longer then.
func (c *Child) Kill() {
	at := time.Now()
	_ = c.process.Process.Kill() // it may have ended
	<-c.ended
	c.reap.Do(func() {
		_ = c.process.Wait() // it reports the signal
		if c.onEnd != nil {
			c.onEnd()
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leading.IsZero() {
		c.leads = append(c.leads, Interval{c.leading, at})
		c.leading = time.Time{}
	}
}
