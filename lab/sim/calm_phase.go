package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// calmPhase is the time after the faults of a cluster have ended. Nodes still die,
// leave, drain and join, several at the same time, but nothing else goes wrong, so
// every member must learn of each change soon.
type calmPhase struct {
	world  *World
	rnd    *stream
	member Member
	bound  time.Duration // for graceful ends, and for recovering from the storm
}

// shareBound is how long it may take until shared roles are led where the plan places
// them. Members check each other's roles rarely, and for some intervals they do not act
// on a role that they have found led by another member than planned.
func (m *calmPhase) shareBound() time.Duration {
	return m.bound + m.member.Spread.MoveDelay + 40*m.member.Config.CheckInterval
}

// propagationBound is the time within which every member learns of a change, on a
// working network.
const propagationBound = time.Second

// run checks invariant 9 after the storm and after each of some rounds.
func (m *calmPhase) run(rounds int) {
	time.Sleep(2 * m.member.Config.Lease) // messages that a slow network has delayed arrive
	recovered := func() string {
		m.world.undrainAll()
		return m.world.notServing()
	}
	if m.expect(m.bound, "have recovered", recovered) {
		m.expect(m.bound, "know the registry", m.world.staleView)
		m.share(nil, nil)
	}
	for range rounds {
		if m.world.Failure() != nil {
			return
		}
		m.round()
	}
}

// expect waits until wrong returns an empty string, and records a violation of
// invariant 9, or another, if that takes too long.
func (m *calmPhase) expect(within time.Duration, what string, wrong func() string) bool {
	return m.expectThat(registryTrue, within, what, wrong)
}

func (m *calmPhase) expectThat(invariant int, within time.Duration, what string, wrong func() string) bool {
	w := m.world
	for until := w.now() + within; ; time.Sleep(5 * time.Millisecond) {
		why := wrong()
		if why == "" {
			return true
		}
		if w.Failure() != nil {
			return false
		}
		if w.now() >= until {
			w.violate(invariant, "not all members %s after %v: %s", what, within, why)
			return false
		}
	}
}

// round changes the state of some of the nodes at the same instant.
func (m *calmPhase) round() {
	w := m.world
	w.mu.Lock()
	machines := slices.Clone(w.machines)
	spared := m.rnd.below(len(machines))
	polite := m.rnd.chance(0.5)
	for i, machine := range machines {
		if i == spared || m.rnd.chance(0.4) {
			continue
		}
		p := machine.process
		switch {
		case !polite:
			p.crash(false)
		case m.rnd.chance(0.5):
			p.end()
		default:
			p.drain(m.bound)
		}
	}
	w.mu.Unlock()
	if !polite {
		m.expect(propagationBound, "know of the dead", w.staleView)
	} else if m.expect(m.bound, "have left or drained", w.unfinished) {
		m.expect(propagationBound, "know who left and who drains", w.staleView)
	}
	// Some members learn one after another of nodes that went at the same time, so
	// their plans differ in between.
	m.share(nil, nil)
	before, served := w.leadersByClaim(), w.serving()
	if w.unfairShare() != "" { // a member has joined in the meantime, and roles move to it
		before = nil
	}
	w.mu.Lock()
	for _, machine := range machines {
		if p := machine.process; p.crashed || p.ctx.Err() != nil {
			machine.start()
		} else {
			p.undrain()
		}
	}
	w.mu.Unlock()
	if m.expect(m.bound, "have come back", w.notServing) {
		m.expect(propagationBound, "know who has come back", w.staleView)
	}
	m.share(before, served)
}

// members returns the running processes that are members of a cluster.
func (w *World) members() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.alive(), func(p *Process) bool { return p.member == nil || p.ctx.Err() != nil })
}

// notServing returns why not every machine runs an active member, or an empty string
// if every one does.
func (w *World) notServing() string {
	members := w.members()
	if why := w.unfinished(); why != "" {
		return why
	}
	for _, p := range members {
		if err := p.member.Ready(); err != nil {
			return fmt.Sprintf("%s: %v", p, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.machines) - len(members); n > 0 {
		return fmt.Sprintf("%d have not joined", n)
	}
	return ""
}

// unfinished names the members that are still leaving, draining or returning.
func (w *World) unfinished() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.alive() {
		if p.doing > 0 || p.ctx.Err() != nil && !p.hasEnded() {
			return fmt.Sprintf("%s has not done it", p)
		}
	}
	return ""
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// staleView compares the view of every member with the truth, and returns the first
// difference.
func (w *World) staleView() string {
	const dead = "gone"
	truth := map[uuid.UUID]string{} // of every node that ever was
	names := map[uuid.UUID]string{}
	members := w.members()
	for _, p := range members {
		d := p.node.Description()
		truth[p.node.ID()] = status(d.Status, d.Drained)
	}
	w.mu.Lock()
	for _, p := range w.processes {
		names[p.id] = p.name
		if truth[p.id] == "" {
			truth[p.id] = dead
		}
	}
	w.mu.Unlock()
	for _, observer := range members {
		seen := map[uuid.UUID]string{}
		for _, node := range observer.member.Nodes() {
			id := node.ID
			if seen[id] != "" {
				return fmt.Sprintf("%s sees %s twice", observer, node.Name)
			}
			seen[id] = dead
			if node.Status != cluster.Dead {
				seen[id] = status(node.Status, node.Drained)
			}
		}
		for id, name := range names {
			if sees := seen[id]; sees != truth[id] && (sees != "" || truth[id] != dead) {
				return fmt.Sprintf("%s takes %s for %q; it is %q", observer, name, sees, truth[id])
			}
		}
	}
	return ""
}

func status(status tenure.NodeStatus, drained bool) string {
	if drained {
		return string(status) + ", drained"
	}
	return string(status)
}
