package sim

import (
	"errors"
	"time"

	"github.com/exactly-one/tenure"
)

// User code runs in a process too: the log handler, the callbacks, the retry strategy,
// the functions for the load and the description. Faults make it block or panic. That
// must never keep trust from ending, nor a node from leading: only what such code
// decides may wait for it.

// userCode is a kind of user code.
type userCode int

const (
	ofLog userCode = iota
	ofCallbacks
	ofRetry
	ofLoad
	ofDescription
	foreignKinds
)

var errForeign = errors.New("on purpose")

// enter is called by user code: it blocks or panics while a fault demands that.
func (p *Process) enter(kind userCode) {
	w := p.machine.world
	w.mu.Lock()
	held, panics := p.held[kind], p.panics[kind]
	w.mu.Unlock()
	if held != nil {
		<-held
	}
	if panics {
		panic(errForeign)
	}
}

// hold makes one kind of user code block from now on. It is called with World.mu held,
// and so are the others.
func (p *Process) hold(kind userCode) {
	if p.held[kind] == nil && !p.crashed {
		p.held[kind] = make(chan struct{})
	}
}

// releaseForeign ends the effects of hold and spoil, for all kinds.
func (p *Process) releaseForeign() {
	for kind, held := range p.held {
		if held != nil {
			close(held)
			p.held[kind] = nil
		}
		p.panics[kind] = false
	}
}

// isHeldUp reports whether the retry strategy blocks, so that the process tries to
// acquire no role unless it is notified.
func (p *Process) isHeldUp() bool { return p.held[ofRetry] != nil }

// load is the function for the load of a process.
func (p *Process) load() tenure.Load {
	p.enter(ofLoad)
	return tenure.Load{}
}

// listen registers callbacks that can block and panic.
func (p *Process) listen(e *tenure.Election) {
	e.OnStateChange(func(tenure.State, tenure.State) { p.enter(ofCallbacks) })
}

// describe changes the description of the process, with a function that can block and
// panic.
func (p *Process) describe(version string) {
	if p.node == nil {
		return
	}
	p.goAside(func() {
		defer func() {
			if reason := recover(); reason != nil {
				p.log("describing itself: panic: %v", reason)
			}
		}()
		err := p.node.UpdateDescription(p.ctx, func(d *tenure.Description) {
			p.enter(ofDescription)
			d.Version = version
		})
		p.log("described itself: %v", err)
	})
}

// goAside runs f in another goroutine of the process, which ends with the process.
func (p *Process) goAside(f func()) {
	if w := p.machine.world; !w.closing && !p.crashed {
		w.group.Go(f)
	}
}

// blockForeign makes user code of a process block.
func (s *storm) blockForeign(m *Machine) {
	kind, p := userCode(s.rnd.below(int(foreignKinds))), m.process
	s.world.log("storm", "%s: code of kind %d blocks", p, kind)
	p.hold(kind)
	if kind == ofDescription {
		p.describe("blocked")
	}
	s.world.after(2*s.lasting(), p.releaseForeign)
}

// spoilForeign makes user code of a process panic.
func (s *storm) spoilForeign(m *Machine) {
	kind, p := userCode(s.rnd.below(int(foreignKinds))), m.process
	s.world.log("storm", "%s: code of kind %d panics", p, kind)
	p.panics[kind] = true
	if kind == ofDescription {
		p.describe("spoiled")
	}
	s.world.after(s.lasting(), p.releaseForeign)
}

// markDead marks silent nodes dead, as an operator would.
func (s *storm) markDead(*Machine) {
	for range 4 {
		s.world.after(s.rnd.between(0, 3*s.lease), func() { s.world.server.markDead(time.Millisecond) })
	}
}

// markLiveNodeDead makes the session of a node stuck, cuts the node off, and marks it
// dead as an operator would.
func (s *storm) markLiveNodeDead(m *Machine) {
	s.blockSession(m)
	s.block(m.paths()...)
	s.markDead(m)
}

// dropNotices makes a node vanish with its session stuck, while the watch connections
// of all other nodes are blocked for a long time.
func (s *storm) dropNotices(m *Machine) {
	s.blockSession(m)
	m.process.crash(true)
	s.world.after(8*s.lease, func() { s.revive(m) })
	for _, other := range s.world.machines {
		if other != m {
			s.blockFor(s.rnd.between(4*s.lease, 8*s.lease), other.watchUp, other.watchDown)
		}
	}
}

// unreachable cuts all machines off from the database.
func (s *storm) unreachable(*Machine) {
	var all []*path
	for _, m := range s.world.machines {
		all = append(all, m.paths()...)
	}
	s.block(all...)
}
