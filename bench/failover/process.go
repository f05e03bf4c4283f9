package main

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
	"syscall"
	"time"
)

// patience bounds every wait for a child.
const patience = 60 * time.Second

// interval is a time in which a process said that it leads.
type interval struct{ from, to int64 }

// child is a process of the benchmark.
type child struct {
	name    string
	kind    string
	process *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{}

	mu      sync.Mutex
	news    chan struct{} // closed at the next report
	reports []report
	leads   []interval
	leading int64 // since, or 0
}

var serial int

// spawn starts a child, inside a network namespace if one is named.
func (b *bench) spawn(ctx context.Context, namespace, kind string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	serial++
	c := &child{name: fmt.Sprintf("n%d", serial), kind: kind, ended: make(chan struct{}), news: make(chan struct{})}
	command := append([]string{self, kind, "-name", c.name}, args...)
	if namespace != "" {
		command = append([]string{"ip", "netns", "exec", namespace}, command...)
	}
	c.process = exec.Command(command[0], command[1:]...)
	c.process.Stderr = os.Stderr
	c.process.SysProcAttr = dieWithParent()
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
	go c.read(stdout)
	b.children, b.all = append(b.children, c), append(b.all, c)
	_, err = c.await(ctx, "ready", time.Time{})
	return c, err
}

func (c *child) read(stdout io.Reader) {
	defer close(c.ended)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		c.mu.Lock()
		c.reports = append(c.reports, r)
		switch r.Kind {
		case "lead":
			c.leading = r.At
		case "follow":
			c.leads = append(c.leads, interval{c.leading, r.Last})
			c.leading = 0
		}
		close(c.news)
		c.news = make(chan struct{})
		c.mu.Unlock()
	}
}

// find returns the first report of a kind since a moment.
func (c *child) find(kind string, since time.Time) (report, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.reports, func(r report) bool { return r.Kind == kind && r.At >= since.UnixNano() })
	if i < 0 {
		return report{}, false
	}
	return c.reports[i], true
}

// await waits for a report of a kind since a moment.
func (c *child) await(ctx context.Context, kind string, since time.Time) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		if r, found := c.find(kind, since); found {
			return r, nil
		}
		select {
		case <-news:
		case <-c.ended:
			return report{}, fmt.Errorf("%s ended", c.name)
		case <-ctx.Done():
			return report{}, fmt.Errorf("%s: %w", c.name, context.Cause(ctx))
		}
	}
}

// says reports whether the child said last that it leads.
func (c *child) says() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leading != 0
}

func (c *child) command(word string) error {
	_, err := io.WriteString(c.stdin, word+"\n")
	return err
}

func (c *child) signal(s syscall.Signal) error { return c.process.Process.Signal(s) }

// kill ends the child and closes the books on it.
func (b *bench) kill(c *child) {
	at := time.Now().UnixNano()
	_ = c.process.Process.Kill()
	_ = c.process.Wait()
	<-c.ended
	c.mu.Lock()
	if c.leading != 0 {
		c.leads = append(c.leads, interval{c.leading, at})
		c.leading = 0
	}
	c.mu.Unlock()
	b.children = slices.DeleteFunc(b.children, func(other *child) bool { return other == c })
}

func (b *bench) killAll() {
	for len(b.children) > 0 {
		b.kill(b.children[0])
	}
	b.all = nil
}

// overlap is the longest time in which two processes both said that they lead.
func (b *bench) overlap() time.Duration {
	var longest int64
	for i, one := range b.all {
		for _, other := range b.all[i+1:] {
			if one.kind != "child-node" || other.kind != "child-node" {
				continue
			}
			for _, a := range one.intervals() {
				for _, c := range other.intervals() {
					longest = max(longest, min(a.to, c.to)-max(a.from, c.from))
				}
			}
		}
	}
	return time.Duration(longest)
}

func (c *child) intervals() []interval {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.leads)
	if c.leading != 0 {
		all = append(all, interval{c.leading, time.Now().UnixNano()})
	}
	return all
}
