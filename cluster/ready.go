package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
)

// ErrTooFewNodes is returned while fewer than the minimum of nodes have joined.
// It matches tenure.ErrNotActive.
var ErrTooFewNodes = fmt.Errorf("%w: too few nodes", tenure.ErrNotActive)

// readiness records whether the minimum of nodes has joined.
type readiness struct {
	timedOut chan struct{} // closed when the startup timeout has passed

	mu  sync.Mutex
	met bool // stays true once set
}

func newReadiness(minNodes int) *readiness {
	return &readiness{timedOut: make(chan struct{}), met: minNodes <= 1}
}

// startTimer starts the startup timeout, unless it is 0.
func (r *readiness) startTimer(timeout time.Duration, clock clocks.Clock) (stop func() bool) {
	if timeout == 0 {
		return func() bool { return true }
	}
	return clock.AfterFunc(timeout, func() { close(r.timedOut) })
}

func (r *readiness) isMet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met
}

func (r *readiness) markMet() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met = true
}

// undrainedStatus returns the status of this member when it does not drain.
func (m *Member) undrainedStatus() NodeStatus {
	if m.readiness.isMet() {
		return Active
	}
	return Joining
}

// Ready returns nil if the member accepts work, or an error with the reason. The error
// matches tenure.ErrSessionLost while there is no session, [ErrTooFewNodes] and
// tenure.ErrNotActive while too few nodes have joined, tenure.ErrNotActive while the
// member drains, and tenure.ErrClosed after it has left. It does not query the database.
func (m *Member) Ready() error {
	if m.ctx.Err() != nil {
		return tenure.ErrClosed
	}
	if !m.node.Connected() {
		return fmt.Errorf("%w; a new one is being opened", tenure.ErrSessionLost)
	}
	status := m.node.Description().Status
	switch {
	case status == Active:
		return nil
	case status == Joining && !m.readiness.isMet():
		return m.minNodesError()
	default:
		return fmt.Errorf("%w: its status is %s", tenure.ErrNotActive, status)
	}
}

// WaitReady returns nil when the member accepts work. It returns an error like
// [Member.Ready] if the startup timeout passes, the member leaves, or ctx ends. In the
// last case the error also matches the cause of ctx.
func (m *Member) WaitReady(ctx context.Context) error {
	wakeups, stop := m.node.Subscribe()
	defer stop()
	late := m.readiness.timedOut
	for {
		err := m.Ready()
		if err == nil || m.ctx.Err() != nil {
			return err
		}
		select {
		case <-wakeups: // also wakes up when the registry has a new status
		case <-late:
			late = nil
			if m.node.Description().Status == Joining {
				return m.Ready()
			}
		case <-m.ctx.Done():
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// minNodesError returns an error with the joined nodes, and the nodes not counted.
func (m *Member) minNodesError() error {
	members, _ := m.view.members()
	names, others := countedNames(members)
	have := "have"
	if len(names) == 1 {
		have = "has"
	}
	why := fmt.Sprintf("%d of %d nodes %s joined", len(names), m.config.MinNodes, have)
	if len(names) > 0 {
		why += ": " + strings.Join(names, ", ")
	}
	if len(others) > 0 {
		why += "; not counted: " + strings.Join(others, ", ")
	}
	select {
	case <-m.readiness.timedOut:
		why = fmt.Sprintf("the startup timeout of %v has passed: %s", m.config.StartupTimeout, why)
	default:
	}
	return fmt.Errorf("%w: %s", ErrTooFewNodes, why)
}

// countedNames returns the names of the nodes counted toward the minimum, and of the other
// live nodes, each with the reason.
func countedNames(members []tenure.Member) (counted, others []string) {
	for _, member := range members {
		switch accepts := member.Status == Active || member.Status == Joining; {
		case accepts && slices.Contains(member.Roles, string(Observer)):
			others = append(others, fmt.Sprintf("%s (%s)", member.Name, Observer))
		case accepts:
			counted = append(counted, member.Name)
		case member.Status == Draining:
			others = append(others, fmt.Sprintf("%s (%s)", member.Name, Draining))
		}
	}
	return counted, others
}

// awaitMinNodes makes the member active when the minimum of nodes has joined.
func (m *Member) awaitMinNodes(ctx context.Context) {
	for ctx.Err() == nil {
		members, changed := m.view.members()
		if counted, _ := countedNames(members); len(counted) >= m.config.MinNodes {
			m.readiness.markMet()
		}
		if m.readiness.isMet() {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return
	}
	err := m.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if d.Status == Joining {
			d.Status = Active
		}
	})
	if err != nil && ctx.Err() == nil { // the registry is updated later
		m.node.Logger().Warn("publishing the status active failed", "error", err)
	}
}
