//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/lab/chaos/record"
)

// member is a node as the run sees it: one process after another.
type member struct {
	bed    *bed
	number int
	relay  *faultwire.Proxy // nil if the node is in a namespace
	dsn    string
	turn   chan struct{} // held by the fault that acts on it

	process   *children.Child
	processes int

	// Guarded by bed.mu.
	name      string // of the process
	id        uuid.UUID
	ending    bool // the process is to end
	connected bool
	leads     map[string]record.Lead // that have not ended
	alive     int64                  // when the process last looked
}

// start starts a process of the node.
func (m *member) start() error {
	m.processes++
	name := fmt.Sprintf("n%d.%d", m.number, m.processes)
	m.bed.mu.Lock()
	m.name, m.id, m.ending, m.connected, m.leads, m.alive = name, uuid.Nil, false, false, map[string]record.Lead{}, record.Now()
	m.bed.mu.Unlock()
	o := children.Options{
		Name: name, Note: m.note, Stderr: m.bed.logs,
		Args: []string{
			"child", "-name", name, "-dsn", m.dsn, "-lease", m.bed.lease.String(), "-roles", fmt.Sprint(m.bed.roles),
			"-receiver", m.bed.receiver.url, "-steps", m.bed.steps.Name(),
		},
	}
	if !m.bed.relayed(m.number) {
		o.Before = m.bed.network.Within(m.number - 1)
	}
	var err error
	if m.process, err = children.Start(o); err != nil {
		return err
	}
	go m.supervise(name, m.process)
	return m.bed.freezers.add(m.number, m.process.PID())
}

// supervise complains if a process ends that should not.
func (m *member) supervise(name string, process *children.Child) {
	<-process.Ended()
	m.bed.mu.Lock()
	expected := m.ending || m.name != name
	m.bed.mu.Unlock()
	if !expected {
		m.bed.recordViolation("the process %s ended unexpectedly", name)
	}
}

// note takes the reports of a process.
func (m *member) note(r children.Report) (keep bool) {
	var msg message
	if err := json.Unmarshal(r.Data, &msg); err != nil {
		m.bed.recordViolation("the report %s of %s cannot be read: %v", r.Kind, m.name, err)
		return false
	}
	b := m.bed
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &b.history
	switch r.Kind {
	case alive:
		m.alive = msg.To
		return false
	case opened:
		m.id, _ = uuid.Parse(msg.Node) // a node's id
	case connected:
		m.connected = msg.Holds
	case began:
		h.Begins = append(h.Begins, record.Begin{Role: msg.Role, Node: m.name, Term: msg.Term, From: msg.From, To: msg.To})
	case leads:
		m.leads[msg.Role] = record.Lead{Role: msg.Role, Node: m.name, Term: msg.Term, From: msg.From}
	case followed:
		delete(m.leads, msg.Role)
		h.Leads = append(h.Leads, record.Lead{Role: msg.Role, Node: m.name, Term: msg.Term, From: msg.From, To: max(msg.From, msg.To)})
	case wrote:
		h.Writes = append(h.Writes, record.Write{
			Role: msg.Role, Node: m.name, Term: msg.Term, Sequence: msg.Sequence, Position: msg.Position, From: msg.From, To: msg.To,
		})
	case fenced:
		h.Rejected++
	case unknown:
		h.Unknown++
	case started:
		h.Ticks = append(h.Ticks, record.Tick{Schedule: msg.Schedule, Node: m.name, Run: msg.Run, Attempt: msg.Attempt, At: msg.To})
	case appended:
		h.Appended = append(h.Appended, record.Append{ID: msg.ID, At: msg.To})
	case sampled:
		h.Samples = append(h.Samples, *msg.Sample)
	}
	fmt.Fprintf(b.lines, "{\"process\":%q,\"kind\":%q,\"data\":%s}\n", m.name, r.Kind, r.Data)
	return false
}

// kill ends the process. Its terms count until it last looked.
func (m *member) kill() {
	if m.process == nil {
		return
	}
	m.expectEnd()
	m.process.Kill()
	m.bed.dies(m.id)
	m.closeLeads()
}

// terminate asks the process to end, and waits for that.
func (m *member) terminate(ctx context.Context, limit time.Duration) error {
	m.expectEnd()
	if err := m.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	defer m.kill()
	select {
	case <-m.process.Ended():
		return nil
	case <-time.After(limit):
		_ = m.process.Signal(syscall.SIGQUIT) // it prints its goroutines
		return fmt.Errorf("%s has not shut down within %v", m.name, limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *member) expectEnd() {
	m.bed.mu.Lock()
	defer m.bed.mu.Unlock()
	m.ending = true
}

func (m *member) closeLeads() {
	m.bed.mu.Lock()
	defer m.bed.mu.Unlock()
	for _, lead := range m.leads {
		lead.To = max(lead.From, m.alive)
		m.bed.history.Leads = append(m.bed.history.Leads, lead)
	}
	m.leads, m.connected = map[string]record.Lead{}, false
}

// signal sends a signal to the process: to stop it, or to let it continue.
func (m *member) signal(signal os.Signal) error { return m.process.Signal(signal) }

// connectedMembers counts the nodes that have reported a session.
func (b *bed) connectedMembers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, m := range b.members {
		if m.connected {
			n++
		}
	}
	return n
}

// settled reports whether all nodes have a session and every role has a leader.
func (b *bed) settled() bool {
	if b.connectedMembers() < len(b.members) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	led := map[string]bool{}
	for _, m := range b.members {
		for role := range m.leads {
			led[role] = true
		}
	}
	return len(led) == len(b.history.Roles)
}
