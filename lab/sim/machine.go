package sim

import (
	"fmt"
	"time"
)

// Machine is a host with its own clock and its own network paths to the server. One
// process runs on it at a time.
type Machine struct {
	world *World
	name  string
	clock *Clock

	sessionUp, sessionDown *path
	watchUp, watchDown     *path
	poolUp, poolDown       *path

	member      Member        // how its processes run the engine
	slow        time.Duration // most that a fault adds to each statement of its session
	watchClosed bool          // its watch has no connection, and the node knows it
	process     *Process
	lives       int
}

// NewMachine adds a machine.
func (w *World) NewMachine() *Machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &Machine{world: w, name: fmt.Sprintf("n%d", len(w.machines)+1)}
	m.clock = &Clock{world: w, machine: m}
	m.sessionUp, m.sessionDown = w.newPath(), w.newPath()
	m.watchUp, m.watchDown = w.newPath(), w.newPath()
	m.poolUp, m.poolDown = w.newPath(), w.newPath()
	for _, p := range []*path{m.watchUp, m.watchDown} {
		p.changed = func() {
			w.server.ring()
			w.after(m.member.Config.Lease+1, w.server.ring)
		}
	}
	if w.network.Steady {
		for _, p := range m.paths() {
			p.least += time.Duration(len(w.machines)) * 100 * time.Microsecond
		}
	}
	w.machines = append(w.machines, m)
	return m
}

// paths returns all network paths between the machine and the server.
func (m *Machine) paths() []*path {
	return []*path{m.sessionUp, m.sessionDown, m.watchUp, m.watchDown, m.poolUp, m.poolDown}
}

// watchBroken reports whether the watch has no connection and the node knows it: a node
// notices within a lease that the connection is blocked.
func (m *Machine) watchBroken() bool {
	now := m.world.now()
	stalled := func(p *path) bool {
		return !m.world.server.defects.StalledWatch && p.blocked && now-p.blockedAt >= m.member.Config.Lease
	}
	return m.watchClosed || stalled(m.watchUp) || stalled(m.watchDown)
}

// restoreWatch gives the watch its connection back.
func (m *Machine) restoreWatch() {
	if m.watchClosed {
		m.watchClosed = false
		m.world.server.ring()
	}
}

func (m *Machine) String() string { return m.name }
