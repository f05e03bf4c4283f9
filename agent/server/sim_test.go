package server

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/tenuretest"
)

const simRole = "r"

var (
	simSchedules = flag.Int("schedules", 0, "simulated schedules of hosts; 0: 500, and 50 in a short run")
	simSeed      = flag.Uint64("seed", 0, "the first seed of the simulated schedules of hosts")
)

// simNow is the boot clock of a bubble.
func simNow() wire.Moment { return wire.Moment(time.Now().UnixNano()) }

// simWorld has two hosts, each with an agent and three nodes, and one database.
type simWorld struct {
	t       *testing.T
	db      *tenuretest.Database
	logger  *slog.Logger
	timing  tenure.Timing // of the agents
	lease   time.Duration // of the nodes
	refresh time.Duration // of the nodes
	nodes   []*simNode
	over    chan struct{} // closed when all processes end
	group   sync.WaitGroup

	mu     sync.Mutex
	rnd    *rand.Rand // guarded by mu
	agents [2]*simAgent
	last   int64 // term; guarded by mu
	begun  int   // terms; guarded by mu
}

func newWorld(t *testing.T, seed uint64) *simWorld {
	w := &simWorld{
		t: t, db: tenuretest.NewDatabase(), logger: slog.New(slog.DiscardHandler), over: make(chan struct{}),
		rnd: rand.New(rand.NewPCG(seed, 40)),
	}
	lease := w.between(2*time.Second, 6*time.Second)
	w.timing = tenure.Timing{Lease: lease, RefreshInterval: lease / 4, Margin: lease / 10, CheckInterval: time.Second}
	w.lease = w.between(time.Second, 8*time.Second)
	w.refresh = min(w.lease/3, lease/4)
	if w.chance(2) {
		w.timing.Settle = time.Second
	}
	for host := range w.agents {
		w.agents[host] = w.startAgent()
		for i := range 3 {
			w.nodes = append(w.nodes, &simNode{world: w, name: fmt.Sprintf("%d-%d", host, i), host: host})
		}
	}
	for _, n := range w.nodes {
		w.group.Go(n.run) // exits when over is closed
	}
	return w
}

func (w *simWorld) between(least, most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return least + time.Duration(w.rnd.Int64N(int64(most-least)+1))
}

// chance is true once in n times.
func (w *simWorld) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chanceLocked(n)
}

func (w *simWorld) chanceLocked(n int) bool { return w.rnd.IntN(n) == 0 }

func (w *simWorld) agentOf(host int) *simAgent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.agents[host]
}

func (w *simWorld) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// begin begins a term of a node that still trusts its session, and checks it.
func (w *simWorld) begin(n *simNode, term int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !n.trustsLocked() {
		return
	}
	if term <= w.last {
		w.t.Errorf("invariant 2: term %d of node %s follows term %d", term, n.name, w.last)
	}
	for _, other := range w.nodes {
		if other != n && other.leadsLocked() {
			w.t.Errorf("invariant 1: node %s begins term %d while node %s trusts term %d for another %v",
				n.name, term, other.name, other.term, other.trust.Sub(simNow()))
		}
	}
	w.last, n.term = term, term
	w.begun++
}

// fault lets one thing go wrong, for a while.
func (w *simWorld) fault() {
	host := int(w.between(0, 1))
	agent, node := w.agentOf(host), w.nodes[w.between(0, time.Duration(len(w.nodes)-1))]
	while := func(begin, end func()) {
		begin()
		d := w.between(0, 2*w.timing.Lease)
		w.group.Go(func() { // exits after d
			select {
			case <-time.After(d):
			case <-w.over:
			}
			end()
		})
	}
	replace := func() {
		next := w.startAgent()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.agents[host] = next
	}
	switch w.between(0, 9) {
	case 0, 1:
		while(node.process.stop, node.process.open)
	case 2:
		node.kill()
	case 3:
		while(agent.process.stop, agent.process.open)
	case 4:
		while(agent.network.stop, agent.network.open)
	case 5:
		agent.kill()
		time.Sleep(w.between(0, w.timing.Lease/2))
		replace()
	case 6:
		agent.leave()
		agent.process.open()
		agent.network.open()
		<-agent.ended
		replace()
	case 7, 8:
		while(func() { agent.slow.Store(true) }, func() { agent.slow.Store(false) })
	case 9:
		if w.chance(2) {
			agent.lose.Store(true)
			return
		}
		w.db.Fail(errBusy)
		time.Sleep(w.between(0, w.timing.Lease))
		w.db.Fail(nil)
	}
}

// heal ends all faults, and requires that a node leads then.
func (w *simWorld) heal() {
	for _, n := range w.nodes {
		n.process.open()
	}
	for host := range w.agents {
		a := w.agentOf(host)
		a.process.open()
		a.network.open()
		a.slow.Store(false)
	}
	w.mu.Lock()
	before := w.begun
	w.mu.Unlock()
	leads := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, n := range w.nodes {
			if n.leadsLocked() {
				return true
			}
		}
		return w.begun > before
	}
	most := 3*w.timing.Lease + w.lease + w.timing.Settle
	for began := time.Now(); !leads(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > most {
			w.t.Errorf("invariant 7: no node leads %v after the last fault", most)
			return
		}
	}
}

// end ends all processes.
func (w *simWorld) end() {
	close(w.over)
	for _, a := range w.agents {
		a.process.open()
		a.network.open()
		a.leave()
	}
	w.group.Wait()
}

// Nodes behind agents that freeze, die, restart and lose their server: at most one node
// leads, term numbers increase, and when the faults have ended a node leads.
func TestSimulatedHosts(t *testing.T) {
	t.Parallel()
	seeds := *simSchedules
	switch {
	case seeds > 0:
	case testing.Short():
		seeds = 50
	default:
		seeds = 500
	}
	terms := 0
	for i := range seeds {
		seed := *simSeed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			for range 20 {
				time.Sleep(w.between(0, w.timing.Lease/2))
				w.fault()
			}
			w.heal()
			w.end()
			terms += w.begun
			if t.Failed() { // it ends the outer test, too
				t.Logf("the seed is %d: go test ./agent/server -run '^TestSimulatedHosts$' -schedules=1 -seed=%d", seed, seed)
			}
		})
	}
	t.Logf("%d terms in %d schedules", terms, seeds)
	if terms < 3*seeds {
		t.Errorf("only %d terms began in %d schedules", terms, seeds)
	}
}
