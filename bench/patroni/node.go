//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// term is a term that began, as its leader says.
type term struct {
	node   string
	number int64
	at     time.Time
}

// entry is a write whose commit a leader saw acknowledged.
type entry struct{ term, sequence int64 }

// node is a process that takes part in the election, and what it said.
type node struct {
	name    string
	process *exec.Cmd
	ended   chan struct{}

	mu        sync.Mutex
	ready     bool
	connected time.Time // since when, or zero
	sessions  []time.Time
	terms     []term
	leads     []interval
	leading   time.Time // since when, or zero
	written   []entry
}

// spawn starts a node and waits until it takes part.
func (b *bed) spawn(ctx context.Context, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	level := "ERROR"
	if b.verbose {
		level = "INFO"
	}
	n := &node{name: name, ended: make(chan struct{})}
	n.process = exec.Command(self, "child", "-dsn", b.hosts(), "-name", name, "-lease", b.lease.String(),
		"-failover-wait", b.failoverWait.String(), fmt.Sprintf("-synchronous=%t", b.synchronous), "-level", level)
	n.process.Stderr = b.nodeLog
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	stdout, err := n.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.process.Start(); err != nil {
		return err
	}
	b.nodes = append(b.nodes, n)
	go n.read(stdout)
	return b.await(ctx, 30*time.Second, name+" does not take part", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ready
	})
}

func (n *node) read(stdout io.Reader) {
	defer close(n.ended)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			n.note(r)
		}
	}
}

func (n *node) note(r report) {
	at := time.Unix(0, r.At)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r.Kind {
	case "ready":
		n.ready = true
	case "connected":
		n.connected = at
		n.sessions = append(n.sessions, at)
	case "disconnected":
		n.connected = time.Time{}
	case "acquired":
		n.terms = append(n.terms, term{n.name, r.Term, at})
	case "lead":
		n.leading = at
	case "follow":
		n.leads = append(n.leads, interval{n.leading, time.Unix(0, r.Last)})
		n.leading = time.Time{}
	case "written":
		n.written = append(n.written, entry{r.Term, r.Sequence})
	}
}

// kill ends the process, if it has not ended. It leads no longer then.
func (n *node) kill() {
	at := time.Now()
	_ = n.process.Process.Kill()
	<-n.ended
	_ = n.process.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connected = time.Time{}
	if !n.leading.IsZero() {
		n.leads = append(n.leads, interval{n.leading, at})
		n.leading = time.Time{}
	}
}

// await polls until something is so.
func (b *bed) await(ctx context.Context, limit time.Duration, complaint string, so func() bool) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(limit); !so(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s within %v", complaint, limit)
		}
		for _, n := range b.nodes {
			select {
			case <-n.ended:
				return fmt.Errorf("the process of %s ended", n.name)
			default:
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// leader is the node that says that it leads, with the number of its term.
func (b *bed) leader() (*node, int64) {
	for _, n := range b.nodes {
		n.mu.Lock()
		leads, last := !n.leading.IsZero(), len(n.terms)-1
		var number int64
		if last >= 0 {
			number = n.terms[last].number
		}
		n.mu.Unlock()
		if leads && last >= 0 {
			return n, number
		}
	}
	return nil, 0
}

// settled reports whether one node leads and all are connected.
func (b *bed) settled() bool {
	leader, _ := b.leader()
	for _, n := range b.nodes {
		n.mu.Lock()
		connected := !n.connected.IsZero()
		n.mu.Unlock()
		if !connected {
			return false
		}
	}
	return leader != nil
}

// terms lists all terms in the order in which they began.
func (b *bed) terms() []term {
	var all []term
	for _, n := range b.nodes {
		n.mu.Lock()
		all = append(all, n.terms...)
		n.mu.Unlock()
	}
	slices.SortFunc(all, func(a, c term) int { return a.at.Compare(c.at) })
	return all
}

// termAfter returns the first term that began after a moment.
func (b *bed) termAfter(since time.Time) (term, bool) {
	for _, t := range b.terms() {
		if t.at.After(since) {
			return t, true
		}
	}
	return term{}, false
}

// sessionsAfter returns when the first and the last node opened its first session
// after a moment, if all did.
func (b *bed) sessionsAfter(since time.Time) (first, last time.Time, err error) {
	for _, n := range b.nodes {
		n.mu.Lock()
		i := slices.IndexFunc(n.sessions, since.Before)
		var at time.Time
		if i >= 0 {
			at = n.sessions[i]
		}
		n.mu.Unlock()
		switch {
		case i < 0:
			err = errors.New("not every node opened a session")
		case first.IsZero():
			first, last = at, at
		default:
			first, last = earlier(first, at), later(last, at)
		}
	}
	return first, last, err
}

// leads lists when each node said that it leads.
func (n *node) leadsUntil(now time.Time) []interval {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Clone(n.leads)
	if !n.leading.IsZero() {
		all = append(all, interval{n.leading, now})
	}
	return all
}
