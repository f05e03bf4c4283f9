package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// candidate is a process of another system, with the processes that it starts.
type candidate struct {
	process *exec.Cmd
	stdout  io.Closer
	ended   chan struct{} // closed when the process and its output have ended

	mu       sync.Mutex
	lead     leadership
	leaving  bool  // it may end
	problem  error // why it does not keep the protocol
	finished bool
}

// startCandidate starts a command through the shell, in a process group.
func startCandidate(command string, environment ...string) (*candidate, error) {
	c := &candidate{process: exec.Command("/bin/sh", "-c", command), ended: make(chan struct{})}
	c.process.Env = append(os.Environ(), environment...)
	c.process.Stderr = os.Stderr
	c.process.SysProcAttr = groupAttributes()
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdout, c.lead.started = stdout, monotonic()
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	go c.read(stdout) // it ends with the process; kill waits for it
	return c, nil
}

func (c *candidate) read(stdout io.Reader) {
	defer close(c.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 0, maxBesideLine), maxBesideLine)
	for lines.Scan() {
		line, err := parseBesideLine(lines.Bytes())
		if err == nil {
			c.mu.Lock()
			err = c.lead.add(line, monotonic())
			c.mu.Unlock()
		}
		if err != nil {
			c.fail(err)
			break
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		c.fail(fmt.Errorf("printed a line of more than %d bytes", maxBesideLine))
	}
	c.mu.Lock()
	leaving := c.leaving
	c.mu.Unlock()
	if !leaving {
		c.signal(killSignal) // also if it only closed its output
	}
	status := "exit status 0"
	if err := c.process.Wait(); err != nil {
		status = err.Error()
	}
	c.mu.Lock()
	c.finished = true
	leaving = c.leaving
	c.mu.Unlock()
	if !leaving {
		c.fail(fmt.Errorf("ended or closed its output: %s", status))
	}
}

// fail records the first problem, unless the process may do what it likes.
func (c *candidate) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problem == nil && !c.leaving {
		c.problem = err
	}
}

func (c *candidate) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}

// signal signals the process group. The process itself is not waited for before its
// end was recorded, so its id is still its own.
func (c *candidate) signal(signal os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.finished {
		_ = signalGroup(c.process.Process.Pid, signal) // it may have ended
	}
}

// leave permits the process to end.
func (c *candidate) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
}

// kill ends the process group and waits for that. The candidate no longer leads then.
func (c *candidate) kill() {
	at := monotonic()
	c.leave()
	c.signal(killSignal)
	_ = c.stdout.Close() // a process that left the group may hold it open
	<-c.ended
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lead.end(at)
}

// pause stops the process group until resume.
func (c *candidate) pause() {
	c.signal(pauseSignal)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lead.paused = monotonic()
}

func (c *candidate) resume() {
	c.mu.Lock()
	c.lead.resumed = monotonic()
	c.mu.Unlock()
	c.signal(resumeSignal)
}

// leads reports whether the candidate leads, and since when.
func (c *candidate) leads() (since time.Duration, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lead.since, c.lead.last.leader
}

// hasPrinted reports whether the candidate has printed a line, and another one if it was stopped.
func (c *candidate) hasPrinted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lead.hasPrinted && c.lead.paused == 0
}

func (c *candidate) spans() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lead.until(monotonic())
}
