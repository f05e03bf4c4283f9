package sim

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/steps"
)

// Process is one run of a node on a machine, as the operating system and the network
// see it. Its fields are guarded by World.mu.
type Process struct {
	machine *Machine
	name    string
	rnd     *stream // of opening sessions
	gate    *gate
	id      uuid.UUID // of the node, once it has opened a session

	crashed      bool
	silent       atomic.Bool   // as crashed, for readers that do not hold World.mu
	died         chan struct{} // closed when it crashes
	ended        chan struct{} // closed when all its goroutines have ended
	dazed        time.Duration // until when it may not have done what was overdue when it resumed
	sessions     []*session
	transactions []*transaction

	held   [foreignKinds]chan struct{} // closed when that code no longer blocks; nil unless it does
	panics [foreignKinds]bool

	node      *tenure.Node
	member    *cluster.Member // nil unless it belongs to a cluster
	elections map[string]*tenure.Election
	work      map[string]*work         // that has not returned, by role
	returned  map[string]time.Duration // when work last returned, by role
	doing     int                      // requests of other nodes or its program that it is handling
	ctx       context.Context          // of everything that the process does
	end       context.CancelFunc
}

// newProcess puts a process on a machine that runs none.
func (m *Machine) newProcess() *Process {
	w := m.world
	m.lives++
	name := m.name
	if m.lives > 1 {
		name = fmt.Sprintf("%s.%d", m.name, m.lives)
	}
	p := &Process{
		machine: m, name: name, died: make(chan struct{}), ended: make(chan struct{}),
		rnd:  w.stream(name),
		gate: &gate{world: w, rnd: w.stream(name + " gate")},

		elections: map[string]*tenure.Election{}, work: map[string]*work{}, returned: map[string]time.Duration{},
	}
	p.ctx, p.end = context.WithCancel(p.recording(context.Background()))
	m.process = p
	w.processes = append(w.processes, p)
	return p
}

func (p *Process) String() string { return p.name }

// log adds an entry about the process to the transcript until the process crashes:
// after that its goroutines still have to end.
func (p *Process) log(format string, args ...any) {
	if !p.silent.Load() {
		p.machine.world.log(p.name, format, args...)
	}
}

// pause stops the process; its clocks continue.
func (p *Process) pause() {
	if p.crashed {
		return
	}
	p.log("paused")
	p.gate.shut()
}

// How long a resumed process may take to do what is overdue. Timers are late if the
// monotonic clock stood still; the engine checks the wall clock once a second.
const (
	afterPause      = time.Millisecond
	afterSuspension = time.Second + time.Millisecond
)

// resume ends a pause.
func (p *Process) resume() {
	if p.crashed || p.gate.resumed == nil {
		return
	}
	p.log("resumed")
	w, takes := p.machine.world, afterPause
	if p.machine.clock.awake() {
		takes = afterSuspension
	}
	p.dazed = max(p.dazed, w.now()+takes)
	p.gate.open()
	w.after(takes+1, w.checker.check)
}

// paused reports whether the process is paused, or has resumed so recently that it may
// not have done what was overdue.
func (p *Process) paused() bool {
	return p.gate.resumed != nil || p.machine.world.now() < p.dazed
}

// crash ends the process. Its kernel closes the connections, unless the whole machine
// vanishes.
func (p *Process) crash(vanish bool) {
	if p.crashed {
		return
	}
	p.log("crashes (without a word: %t)", vanish)
	p.crashed = true
	p.silent.Store(true)
	p.machine.world.replay.Record(steps.Step{Kind: steps.Dies, Node: p.id.String()})
	close(p.died)
	p.end()
	p.machine.clock.awake()
	p.gate.open()
	p.releaseForeign()
	for _, s := range slices.Clone(p.sessions) {
		s.disconnect(vanish)
	}
	for _, t := range slices.Clone(p.transactions) {
		t.lose()
		if vanish {
			t.up.close()
		}
	}
}

func (p *Process) forget(t *transaction) {
	p.transactions = slices.DeleteFunc(p.transactions, func(other *transaction) bool { return other == t })
}
