package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/connect"
)

// demoRole is the role of the demonstration's nodes.
const demoRole = "demo"

// child is one process of the demonstration.
type child struct {
	slot    int // index of the node
	command *exec.Cmd
	stdin   io.Closer
	log     strings.Builder // its standard error; complete when it has ended
}

func (c *child) pid() int { return c.command.Process.Pid }

// childUpdate is an event of a child, or its end.
type childUpdate struct {
	child *child
	event childEvent
	ended bool
}

// childEvent is the part of a service.EventRecord shown by the demonstration.
type childEvent struct {
	Time  time.Time        `json:"time"`
	Event tenure.EventKind `json:"event"`
	Term  int64            `json:"term"`
	To    string           `json:"to"`
}

// children starts and ends the processes. One goroutine must call start, kill and close.
// On Linux it is locked to its thread: when the thread exits, the kernel kills the
// children.
type children struct {
	database *demoDatabase
	updates  chan childUpdate

	running map[*child]struct{}
	readers sync.WaitGroup
	closing chan struct{}
}

func newChildren(database *demoDatabase) *children {
	return &children{
		database: database, updates: make(chan childUpdate), running: map[*child]struct{}{}, closing: make(chan struct{}),
	}
}

// start starts the node of a slot as a process.
func (c *children) start(slot int) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	started := &child{slot: slot}
	args := []string{"demo-node", "--output", "json", "--log-level", "error",
		"--dsn", c.database.dsn, "--role", demoRole, "--name", slotName(slot)}
	started.command = exec.Command(program, append(args, c.database.settings...)...)
	started.command.Env = connect.WithoutLibpq(os.Environ())
	started.command.Stderr = &started.log
	started.command.SysProcAttr = childAttributes()
	if started.stdin, err = started.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := started.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := started.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", slotName(slot), err)
	}
	c.running[started] = struct{}{}
	c.readers.Add(1)
	go c.read(started, stdout) // exits with the child; close waits through c.readers
	return started, nil
}

// read forwards the events of a child until it has ended.
func (c *children) read(from *child, stdout io.Reader) {
	defer c.readers.Done()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var event childEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err == nil {
			c.send(childUpdate{child: from, event: event})
		}
	}
	_ = from.command.Wait() // its output shows how it ended
	c.send(childUpdate{child: from, ended: true})
}

func (c *children) send(update childUpdate) {
	select {
	case c.updates <- update:
	case <-c.closing:
	}
}

// kill kills a child without warning and returns the time just before.
func (c *children) kill(victim *child) (time.Time, error) {
	at := time.Now()
	return at, victim.command.Process.Kill()
}

// forget removes a child that has ended.
func (c *children) forget(ended *child) {
	_ = ended.stdin.Close() // nothing reads it now
	delete(c.running, ended)
}

// close asks the children to end, kills the remaining ones, and returns when all have
// ended.
func (c *children) close() {
	close(c.closing)
	for running := range c.running {
		_ = running.stdin.Close() // a request to end
	}
	ended := make(chan struct{})
	go func() { // exits when all readers have; close waits for it
		defer close(ended)
		c.readers.Wait()
	}()
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	select {
	case <-ended:
	case <-patience.Done():
		for running := range c.running {
			_ = running.command.Process.Kill() // it may have ended by now
		}
		<-ended
	}
}

func slotName(slot int) string { return fmt.Sprintf("node-%d", slot+1) }
