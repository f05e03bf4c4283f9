package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// ErrTooFewNodes says that the minimum of nodes has not come yet. It matches
// tenure.ErrNotActive.
var ErrTooFewNodes = fmt.Errorf("%w: too few nodes", tenure.ErrNotActive)

// readiness is whether a member has seen the minimum of nodes.
type readiness struct {
	late chan struct{} // closed when the startup timeout has passed

	mu  sync.Mutex
	met bool // for ever
}

func newReadiness(minNodes int) *readiness {
	return &readiness{late: make(chan struct{}), met: minNodes <= 1}
}

// startTimer begins the startup timeout, unless it is 0.
func (r *readiness) startTimer(timeout time.Duration, clock tenure.Clock) (stop func() bool) {
	if timeout == 0 {
		return func() bool { return true }
	}
	return clock.AfterFunc(timeout, func() { close(r.late) })
}

func (r *readiness) isMet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met
}

func (r *readiness) meet() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met = true
}

// statusInService is the status of this member unless it drains.
func (m *Member) statusInService() NodeStatus {
	if m.readiness.isMet() {
		return Active
	}
	return Joining
}

// Ready returns nil if the member accepts work, and otherwise an error that says
// why it does not. The error matches tenure.ErrSessionLost while there is no
// session, [ErrTooFewNodes] while the minimum of nodes has not come,
// tenure.ErrNotActive then and also while the member drains, and
// tenure.ErrClosed when it has left. It asks no database.
func (m *Member) Ready() error {
	if m.life.Err() != nil {
		return tenure.ErrClosed
	}
	if !m.node.Connected() {
		return fmt.Errorf("%w; opening a new one is tried", tenure.ErrSessionLost)
	}
	status := m.node.Description().Status
	switch {
	case status == Active:
		return nil
	case status == Joining && !m.readiness.isMet():
		return m.whoHasCome()
	default:
		return fmt.Errorf("%w: its status is %s", tenure.ErrNotActive, status)
	}
}

// WaitReady returns nil when the member accepts work. It returns an error as
// that of [Member.Ready] when the context ends, which it matches too, when the
// startup timeout has passed, or when the member leaves.
func (m *Member) WaitReady(ctx context.Context) error {
	news, stop := m.node.Subscribe()
	defer stop()
	late := m.readiness.late
	for {
		err := m.Ready()
		if err == nil || m.life.Err() != nil {
			return err
		}
		select {
		case <-news: // among it, that the registry has a new status
		case <-late:
			late = nil
			if m.node.Description().Status == Joining {
				return m.Ready()
			}
		case <-m.life.Done():
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// whoHasCome says which nodes of the minimum have come.
func (m *Member) whoHasCome() error {
	members, _ := m.view.members()
	names := namesOf(members)
	have := "have"
	if len(names) == 1 {
		have = "has"
	}
	why := fmt.Sprintf("%d of %d nodes %s come: %s", len(names), m.config.MinNodes, have, strings.Join(names, ", "))
	select {
	case <-m.readiness.late:
		why = fmt.Sprintf("the startup timeout of %v has passed: %s", m.config.StartupTimeout, why)
	default:
	}
	return fmt.Errorf("%w: %s", ErrTooFewNodes, why)
}

// namesOf returns the names of the nodes that count for the minimum.
func namesOf(members []tenure.Member) []string {
	var names []string
	for _, member := range members {
		if member.Status == Active || member.Status == Joining {
			names = append(names, member.Name)
		}
	}
	return names
}

// awaitNodes takes the member into service when the minimum of nodes has come.
func (m *Member) awaitNodes(ctx context.Context) {
	for ctx.Err() == nil {
		members, changed := m.view.members()
		if len(namesOf(members)) >= m.config.MinNodes {
			m.readiness.meet()
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
	if err != nil && ctx.Err() == nil { // the registry follows
		m.node.Logger().Warn("telling that this node is active failed", "error", err)
	}
}
