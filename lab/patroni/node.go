//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/children"
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
	*children.Child

	mu        sync.Mutex
	connected bool
	sessions  []time.Time
	terms     []term
	written   []entry

	trustEnds time.Time // of a node that was killed: at the latest
}

// spawn starts a node and waits until it takes part.
func (b *bed) spawn(ctx context.Context, name, dsn string) error {
	level := "ERROR"
	if b.verbose {
		level = "INFO"
	}
	n := new(node)
	var err error
	n.Child, err = children.Start(children.Options{
		Name: name, Stderr: b.nodeLog,
		Note: func(r children.Report) bool { n.note(name, r); return r.Kind == ready },
		Args: []string{"child", "-dsn", dsn, "-name", name, "-lease", b.lease.String(),
			"-failover-wait", b.failoverWait.String(), fmt.Sprintf("-synchronous=%t", b.synchronous), "-level", level},
	})
	if err != nil {
		return err
	}
	b.nodes = append(b.nodes, n)
	_, err = n.Await(ctx, ready, time.Time{})
	return err
}

func (n *node) note(name string, r children.Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r.Kind {
	case connected:
		n.connected = true
		n.sessions = append(n.sessions, r.Time())
	case disconnected:
		n.connected = false
	case acquired:
		n.terms = append(n.terms, term{name, r.Term, r.Time()})
	case written:
		n.written = append(n.written, entry{r.Term, r.Sequence})
	}
}

// await polls until something is so.
func (b *bed) await(ctx context.Context, limit time.Duration, complaint string, so func() bool) error {
	var ended error
	err := children.Until(ctx, limit, 5*time.Millisecond, func() error {
		for _, n := range b.nodes {
			select {
			case <-n.Ended():
				ended = fmt.Errorf("the process of %s ended", n.Name)
				return nil
			default:
			}
		}
		if so() {
			return nil
		}
		return errors.New(complaint)
	})
	return errors.Join(ended, err)
}

// everyone lists the nodes of the whole run.
func (b *bed) everyone() []*node { return slices.Concat(b.nodes, b.former) }

// leader is the node that says that it leads, with the number of its term.
func (b *bed) leader() (*node, int64) {
	for _, n := range b.nodes {
		n.mu.Lock()
		leads, last := n.Leading(), len(n.terms)-1
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
		connected := n.connected
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
	for _, n := range b.everyone() {
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
			first, last = children.Earlier(first, at), children.Later(last, at)
		}
	}
	return first, last, err
}

// reunionBefore returns when the last node was back before a term began. A node that
// lost a session after the fault is back with its last one. Instead of one that was
// killed less than a lease before the fault, the end of its trust counts. If a node
// was not back by then, the term did not wait for all.
func (b *bed) reunionBefore(next, since time.Time) (back time.Time, all bool) {
	for _, n := range b.nodes {
		var last time.Time
		n.mu.Lock()
		for _, at := range n.sessions {
			if at.After(since) && at.Before(next) {
				last = at
			}
		}
		n.mu.Unlock()
		if last.IsZero() {
			return time.Time{}, false
		}
		back = children.Later(back, last)
	}
	for _, n := range b.former {
		if n.trustEnds.After(since) {
			back = children.Later(back, n.trustEnds)
		}
	}
	return back, len(b.nodes) > 0 && back.Before(next)
}
