package sim

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// fault is one kind of failure, or of action by an operator or a program. strike is
// called with World.mu held and schedules its own end.
type fault struct {
	name   string
	weight int
	strike func(*storm, *Machine)
}

// faults is everything that can happen. A schedule has only one kind of clock faults: a
// wall clock that is set back while the monotonic clock stands still is outside the
// guarantees.
var faults = []fault{
	{"crash", 3, (*storm).crash},
	{"pause", 3, (*storm).pause},
	{"isolate", 3, (*storm).isolate},
	{"partition session", 4, (*storm).partitionSession},
	{"partition watch", 2, (*storm).partitionWatch},
	{"blind", 2, (*storm).breakWatch},
	{"delay", 2, (*storm).delay},
	{"degrade", 3, (*storm).degrade},
	{"lose notifications", 1, (*storm).loseNotifications},
	{"restart server", 1, (*storm).restartServer},
	{"fail over", 1, (*storm).failOver},
	{"crash server at a begin", 2, (*storm).crashServerAtBegin},
	{"kill session", 2, (*storm).killSession},
	{"slow statements", 2, (*storm).slowStatements},
	{"block row", 2, (*storm).blockRow},
	{"stick", 1, (*storm).blockSession},
	{"clock", 2, (*storm).disturbClock},
	{"step down", 3, (*storm).stepDown},
	{"leave", 1, (*storm).leave},
	{"drain", 2, (*storm).drain},
	{"mark dead", 1, (*storm).markDead},
	{"bury alive", 1, (*storm).markLiveNodeDead},
	{"deafen", 1, (*storm).dropNotices},
	{"unreachable", 1, (*storm).unreachable},
	{"drop schema", 1, (*storm).dropSchema},
	{"code blocks", foreignWeight, (*storm).blockForeign},
	{"code panics", foreignWeight, (*storm).spoilForeign},
}

// foreignWeight is the weight of each fault of user code.
const foreignWeight = 2

// storm strikes machines with faults.
type storm struct {
	world  *World
	rnd    *stream
	lease  time.Duration
	clocks clockFaults
	over   bool // no new fault begins

	synchronous bool // no replica that lags behind is promoted
}

type clockFaults int

const (
	wallSteps   clockFaults = iota // the wall clock is set
	suspensions                    // the monotonic clock stops with the machine
	freezes                        // so does the wall clock: only fencing protects
)

// next draws a fault and a victim.
func (s *storm) next() {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	n := s.rnd.below(total)
	for _, f := range faults {
		if n -= f.weight; n < 0 {
			m := s.victim()
			s.world.log("storm", "%s: %s", f.name, m)
			f.strike(s, m)
			return
		}
	}
}

// victim picks a machine, more often than not one that leads.
func (s *storm) victim() *Machine {
	machine := s.world.machines[s.rnd.below(len(s.world.machines))]
	if s.rnd.chance(0.5) {
		return machine
	}
	role := s.world.roleNames[s.rnd.below(len(s.world.roleNames))]
	if row := s.world.server.roles[role]; row != nil && row.term > 0 {
		return row.holder.client.process.machine
	}
	return machine
}

// lasting is how long a fault lasts: around one lease.
func (s *storm) lasting() time.Duration { return s.rnd.rarely(s.lease) }

func (s *storm) crash(m *Machine) {
	vanish, down := s.rnd.chance(0.3), s.rnd.rarely(s.lease/4)
	m.process.crash(vanish)
	s.world.after(down, func() { s.revive(m) })
}

// revive starts a process on a machine whose last one crashed.
func (s *storm) revive(m *Machine) {
	if m.process.crashed {
		m.start()
	}
}

func (s *storm) pause(m *Machine) {
	p := m.process
	p.pause()
	s.world.after(s.lasting(), p.resume)
}

func (s *storm) isolate(m *Machine) { s.block(m.paths()...) }

func (s *storm) partitionSession(m *Machine) {
	switch s.rnd.below(3) {
	case 0:
		s.block(m.sessionUp, m.sessionDown)
	case 1:
		s.block(m.sessionUp)
	default:
		s.block(m.sessionDown)
	}
}

func (s *storm) partitionWatch(m *Machine) { s.block(m.watchUp, m.watchDown) }

func (s *storm) breakWatch(m *Machine) {
	m.watchClosed = true
	s.world.server.ring()
	s.world.after(s.lasting(), m.restoreWatch)
}

func (s *storm) block(paths ...*path) { s.blockFor(s.lasting(), paths...) }

func (s *storm) blockFor(d time.Duration, paths ...*path) {
	for _, p := range paths {
		p.block()
	}
	s.world.after(d, func() {
		for _, p := range paths {
			p.heal()
		}
	})
}

// delay makes one path slow: an answer can take as long as trust lasts.
func (s *storm) delay(m *Machine) {
	paths := m.paths()
	way := paths[s.rnd.below(len(paths))]
	way.extra = s.rnd.between(0, s.lease)
	s.world.after(s.lasting(), way.heal)
}

// degrade makes answers slow and later blocks the path: the last answers arrive long
// after the last statements were sent.
func (s *storm) degrade(m *Machine) {
	m.sessionDown.extra = s.rnd.between(0, s.lease)
	s.world.after(s.lasting(), func() {
		if s.over {
			return
		}
		m.sessionUp.block()
		s.world.after(s.rnd.between(0, s.lease/2), func() {
			if !s.over {
				m.sessionDown.block()
			}
		})
		s.world.after(s.lease+s.lasting(), func() {
			m.sessionUp.heal()
			m.sessionDown.heal()
		})
	})
}

func (s *storm) loseNotifications(*Machine) {
	before := s.world.network.Loss
	s.world.network.Loss = 1
	s.world.after(s.lasting(), func() {
		if !s.over {
			s.world.network.Loss = before
		}
	})
}

func (s *storm) restartServer(*Machine) {
	server := s.world.server
	if !server.up || server.dropped {
		return
	}
	server.crash(s.rnd.chance(0.3))
	s.world.after(s.rnd.rarely(s.lease/4), server.startIfDown)
}

// crashServerAtBegin crashes the server shortly after the next term has begun, before or
// after its record is durable. The leader may not notice.
func (s *storm) crashServerAtBegin(*Machine) {
	server, unheard := s.world.server, s.rnd.chance(0.5)
	after, down, lasting := s.rnd.between(0, 4*time.Millisecond), s.rnd.rarely(s.lease/4), s.lasting()
	server.crashAtBegin = func(leader *Machine) {
		if s.over {
			return
		}
		if unheard {
			s.blockFor(lasting, leader.sessionUp, leader.sessionDown)
		}
		s.world.after(after, func() {
			if server.up && !server.dropped && !s.over {
				s.replaceCrashed(down)
			}
		})
	}
}

// replaceCrashed crashes the server and starts it again, or promotes a synchronous
// standby.
func (s *storm) replaceCrashed(down time.Duration) {
	server := s.world.server
	if !s.synchronous || server.clocks.chance(0.3) {
		server.crash(true)
		s.world.after(down, server.startIfDown)
		return
	}
	replica := server.replicateFlushed()
	server.crash(true)
	crashed := server.started
	s.world.after(down, func() {
		if !server.up && server.started == crashed {
			server.promote(replica)
		}
	})
}

// failOver makes a replica the server, sometimes one that lags behind.
func (s *storm) failOver(*Machine) {
	server := s.world.server
	replica := server.replicate()
	synchronous := s.rnd.chance(0.5) || s.synchronous
	s.world.after(s.lasting(), func() {
		if !server.up || s.over || server.dropped {
			return
		}
		if synchronous {
			replica = server.replicateFlushed()
		}
		if replica.dropped {
			return
		}
		server.crash(s.rnd.chance(0.5))
		crashed := server.started
		s.world.after(s.rnd.rarely(s.lease/4), func() {
			// A server that has started again has left a synchronous standby behind.
			if !server.up && server.started == crashed {
				server.promote(replica)
			}
		})
	})
}

func (s *storm) killSession(m *Machine) {
	if b := s.world.server.backendOf(m); b != nil {
		b.kill()
	}
}

func (s *storm) slowStatements(m *Machine) {
	m.slow = s.rnd.between(0, s.lease/3)
	s.world.after(s.lasting(), func() { m.slow = 0 })
}

func (s *storm) blockRow(m *Machine) {
	if b := s.world.server.backendOf(m); b != nil {
		b.rowBlock = true
		s.world.after(s.lasting(), func() { b.rowBlock = false })
	}
}

func (s *storm) blockSession(m *Machine) {
	if b := s.world.server.backendOf(m); b != nil {
		b.setStuck(true)
	}
}

func (s *storm) disturbClock(m *Machine) {
	switch s.clocks {
	case wallSteps:
		step := s.lasting()
		if s.rnd.chance(0.5) {
			step = -step
		}
		s.world.log(m.name, "the wall clock steps by %v", step)
		m.clock.step(0, step)
	default:
		p := m.process
		if p.crashed {
			return
		}
		p.pause()
		m.clock.suspend(s.clocks == freezes)
		s.world.after(s.lasting(), p.resume)
	}
}

// stepDown requests a leader to step down or to hand over.
func (s *storm) stepDown(m *Machine) {
	request := tenure.Request{
		Kind: tenure.RequestStepDown, By: "storm",
		Role: s.world.roleNames[s.rnd.below(len(s.world.roleNames))],
	}
	if other := s.world.machines[s.rnd.below(len(s.world.machines))].process; s.rnd.chance(0.5) && other.id != uuid.Nil {
		request.Kind, request.Target = tenure.RequestHandOver, other.id
	}
	p := m.process
	if s.rnd.chance(0.5) {
		p.request(request)
	} else {
		p.stepDown(request, s.rnd.rarely(s.lease))
	}
}

// leave ends a process gracefully and starts another on the machine.
func (s *storm) leave(m *Machine) {
	p := m.process
	p.end()
	pause := s.rnd.rarely(s.lease / 4)
	s.world.group.Go(func() {
		<-p.ended
		time.Sleep(pause)
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		if m.process == p && !s.world.closing {
			m.start()
		}
	})
}

// drain drains a node for a while, as its program does or at the request of another
// node.
func (s *storm) drain(m *Machine) {
	p, patience := m.process, s.rnd.rarely(s.lease)
	requester := s.world.machines[s.rnd.below(len(s.world.machines))].process
	byRequest := s.rnd.chance(0.5)
	if byRequest {
		requester.request(tenure.Request{Kind: tenure.RequestDrain, Node: p.id, Force: s.rnd.chance(0.5), By: "storm"})
	} else {
		p.drain(patience)
	}
	s.world.after(s.lasting(), func() {
		if byRequest && !s.over {
			requester.request(tenure.Request{Kind: tenure.RequestUndrain, Node: p.id, By: "storm"})
		}
		p.undrain()
	})
}

// probe starts one or two faults while nothing else is wrong, mostly on the leader's
// machine, and ends them.
func (s *storm) probe(loss float64) {
	s.world.mu.Lock() // faults draw from the stream, too
	s.over = false
	strikes := 1 + s.rnd.below(2)
	s.world.mu.Unlock()
	for range strikes {
		s.next()
	}
	s.world.mu.Lock()
	lasts := s.rnd.between(0, 3*s.lease)
	s.world.mu.Unlock()
	time.Sleep(lasts)
	s.calm(loss)
}

// calm ends all faults.
func (s *storm) calm(loss float64) {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log("storm", "all faults end")
	s.over = true
	w.network.Loss = loss
	w.server.startIfDown()
	if w.server.stepped != 0 {
		w.server.step(0)
	}
	for _, m := range w.machines {
		for _, p := range m.paths() {
			p.heal()
		}
		m.slow = 0
		m.restoreWatch()
		m.process.releaseForeign()
		if m.process.gate.resumed != nil {
			m.process.resume()
		}
		s.revive(m)
	}
	for _, b := range slices.Clone(w.server.backends) {
		b.rowBlock = false
	}
}
