package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/simcalls"
	"github.com/exactly-one/tenure/internal/steps"
)

// Schedule is a run that a seed decides: how many nodes and roles, how they are
// configured, what their work does, and what goes wrong when. It must be run
// inside a synctest bubble.
type Schedule struct {
	Seed uint64
	// Defects and Wrap break the database or the engine.
	Defects Defects
	Wrap    func(cluster.Store, *Clock) cluster.Store
	// Cluster makes the nodes members of a cluster.
	Cluster bool
	// ServerClock makes the clock of the server step; otherwise it does in some schedules.
	ServerClock bool
	// Full keeps the whole transcript instead of its end.
	Full bool
	// Oracles are what may fail the run.
	Oracles Oracles
	// Steps keeps all steps.
	Steps bool
	// Calls keeps the calls that the database receives.
	Calls bool
}

// Oracles are what judges a run.
type Oracles int

// The zero value is all of them.
const (
	AllOracles     Oracles = iota
	InvariantsOnly         // not the models
	ModelsOnly             // nothing but the models
)

// Result is the result of a schedule.
type Result struct {
	Violation  *Violation // nil if every check passed
	Transcript *Transcript
	Terms      int             // that began
	Lasted     time.Duration   // of fake time
	Replayed   int             // steps
	Steps      []steps.Step    // if they are kept
	Frozen     bool            // clocks of nodes stand still
	Calls      []simcalls.Call // if they are kept
}

// bound is how long a candidate may leave a role vacant after all faults have ended
// (invariant 7).
func (p plan) bound() time.Duration {
	c := p.member.Config
	for i := range p.machines {
		c.Lease = max(c.Lease, p.memberOn(i).Config.Lease)
		c.CheckInterval = max(c.CheckInterval, p.memberOn(i).Config.CheckInterval)
	}
	c.LockTimeout, c.FenceTimeout, c.StopTimeout, c.Settle = 4*c.LockTimeout, 4*c.FenceTimeout, 4*c.StopTimeout, 4*c.Settle
	bound := 4*c.Lease + c.Settle + 2*c.CheckInterval + c.StopTimeout + c.LockTimeout + c.FenceTimeout
	bound += 10 * p.member.Work.Stubborn
	bound += 5 * time.Second             // reconnecting, starting again
	bound += watchPeriod + strangerGrace // a stuck session whose node has had another one since
	if p.member.Work.Term > 0 {
		bound += 12 * c.CheckInterval // work that returned early backs off before it campaigns again
	}
	return bound
}

// plan is what a schedule draws before it starts.
type plan struct {
	machines     int
	roles        []string
	network      Network
	member       Member
	clocks       clockFaults
	lasts        time.Duration
	every        time.Duration // mean time between faults
	looks        time.Duration // time between checks that no event causes; 0 for none
	contextsOnly bool          // checks ask no node whether it leads
	probes       int           // faults that happen one at a time, after the faults of the storm
	scales       []int         // by machine: how often its lease, and what follows from it, is doubled
}

// memberOn returns the configuration of the processes of one machine: nodes may have
// different leases.
func (p plan) memberOn(machine int) Member {
	m := p.member
	if machine < len(p.scales) {
		c, factor := &m.Config, time.Duration(1)<<p.scales[machine]
		for _, d := range []*time.Duration{&c.Lease, &c.Margin, &c.CheckInterval, &c.LockTimeout, &c.FenceTimeout, &c.StopTimeout, &c.Settle} {
			*d *= factor
		}
	}
	return m
}

// draw makes the plan of a schedule.
func (s Schedule) draw() plan {
	rnd := newStream(s.Seed, "schedule")
	lease := pick(rnd, time.Second, 2*time.Second, 4*time.Second)
	p := plan{
		machines: 2 + rnd.below(3),
		roles:    []string{"alpha", "beta"}[:1+rnd.below(2)],
		network: Network{
			Least: pick(rnd, 50*time.Microsecond, time.Millisecond),
			Most:  pick(rnd, 2*time.Millisecond, 20*time.Millisecond),
			Loss:  pick(rnd, 0, 0.2, 1),
		},
		clocks:       pick(rnd, wallSteps, wallSteps, suspensions, suspensions, freezes),
		lasts:        14 * lease,
		every:        pick(rnd, lease/4, lease, 3*lease),
		looks:        pick(rnd, 0, 0, lease/10),
		contextsOnly: rnd.chance(0.3),
	}
	p.member = Member{
		Config: tenure.Config{
			Lease:         lease,
			Margin:        pick(rnd, lease/10, lease/20),
			CheckInterval: pick(rnd, lease/2, lease, 2*lease),
			LockTimeout:   pick(rnd, lease/2, lease, 2*lease),
			FenceTimeout:  pick(rnd, lease/4, lease/2, lease),
			StopTimeout:   pick(rnd, lease/4, 2*lease),
			Settle:        pick(rnd, 0, 0, lease),
		},
		Election: tenure.ElectionConfig{
			ReconnectGrace: pick(rnd, 0, 0, lease/2, 2*lease),
			NoReacquire:    rnd.chance(0.1),
		},
		Work: Work{
			Between:     pick(rnd, lease/5, lease),
			Transaction: pick(rnd, time.Millisecond, lease/4),
			Linger:      pick(rnd, 0, lease/10, lease),
			Stubborn:    pick(rnd, 0, 0, lease/4),
			Term:        pick(rnd, 0, 0, 5*lease),
			Heedless:    rnd.chance(0.3),
			Polite:      rnd.chance(0.5),
		},
		Wrap: s.Wrap,
	}
	p.member.Work.Processes = newStream(s.Seed, "processing").chance(0.4)
	// Another order is refused.
	p.member.Config.LockTimeout = max(p.member.Config.LockTimeout, p.member.Config.FenceTimeout)
	failover := newStream(s.Seed, "failover")
	p.member.Config.SynchronousFailover = failover.chance(0.5)
	if p.member.Config.SynchronousFailover && failover.chance(0.3) {
		p.member.Config.Margin = lease / 2 // the clocks of servers may differ by as much
	}
	p.probes = rnd.below(4)
	p.scales = make([]int, p.machines)
	if s.Cluster {
		s.drawCluster(&p)
	} else if rnd.chance(0.4) {
		for i := range p.scales {
			p.scales[i] = rnd.below(3)
		}
		// An asynchronous replica may lack the row of a node with a longer lease.
		if !p.member.Config.SynchronousFailover {
			p.member.Config.FailoverWait = 4 * lease
		}
	}
	return p
}

// drawCluster changes a plan so that its nodes are members of a cluster.
func (s Schedule) drawCluster(p *plan) {
	rnd := newStream(s.Seed, "cluster")
	lease := p.member.Config.Lease
	p.machines = 3 + rnd.below(4)
	p.lasts /= 2
	p.member.Cluster = &cluster.Config{
		Address:  "127.0.0.1",
		MinNodes: pick(rnd, 0, 0, 2),
		Heartbeat: cluster.HeartbeatConfig{
			DeadThreshold:   pick(rnd, lease/2, 2*lease),
			SkipMarkingDead: rnd.chance(0.2),
		},
		Shutdown: cluster.ShutdownConfig{HandOver: rnd.chance(0.5)},
	}
	if rnd.chance(0.5) {
		return
	}
	p.roles = nil
	for i := range 4 + rnd.below(8) {
		p.roles = append(p.roles, fmt.Sprintf("part/%d", i))
	}
	p.member.Spread = &cluster.SpreadConfig{MoveDelay: pick(rnd, time.Millisecond, time.Second), Election: p.member.Election}
	p.member.Config.CheckInterval = pick(rnd, lease/4, lease/2)
	p.member.Work.Term = 0     // a process whose work returns early leaves the role to others for a long time
	p.member.Config.Settle = 0 // so does one that has to wait for longer than an interval
}

// Run runs the schedule to its end or to the first violation, and fills in the
// result. It returns when every process has ended.
func (s Schedule) Run(result *Result) {
	p := s.draw()
	w := NewWorld(s.Seed, p.network, p.roles...)
	result.Transcript = w.Transcript
	if s.Full {
		w.Transcript.keep = 1 << 30
	}
	w.server.defects = s.Defects
	if s.Calls {
		w.server.calls = &callLog{calls: []simcalls.Call{{Kind: simcalls.Schedules, Seed: s.Seed}}}
		defer func() { result.Calls = w.server.calls.calls }()
	}
	if p.member.Config.SynchronousFailover {
		w.server.clocksDiffer = p.member.Config.Margin
		w.server.setClock()
	}
	w.checker.clocksStop, w.checker.contextsOnly = p.clocks == freezes, p.contextsOnly
	w.checker.off, w.replay.off = s.Oracles == ModelsOnly, s.Oracles == InvariantsOnly
	w.replay.checker.Frozen, w.replay.keep = p.clocks == freezes, s.Steps
	rnd := newStream(s.Seed, "pauses")
	storm := &storm{world: w, rnd: newStream(s.Seed, "storm"), lease: p.member.Config.Lease, clocks: p.clocks,
		synchronous: p.member.Config.SynchronousFailover}
	for i := range p.machines {
		m := w.NewMachine()
		time.Sleep(rnd.between(0, 10*time.Millisecond))
		m.Start(p.memberOn(i))
	}
	if rnd := newStream(s.Seed, "server's clock"); rnd.chance(0.3) || s.ServerClock {
		w.mu.Lock()
		storm.stepClock(rnd)
		w.mu.Unlock()
	}
	ctx, stop := context.WithCancel(context.Background())
	if p.member.Spread == nil { // where roles are shared, it matters who leads: invariant 11
		w.group.Go(func() { w.watchVacancies(ctx, p.member.Config.Lease/37) })
	}
	if p.looks > 0 {
		w.group.Go(func() { w.checkEvery(ctx, p.looks) })
	}
	for w.now() < p.lasts && w.Failure() == nil {
		time.Sleep(rnd.rarely(p.every))
		storm.next()
	}
	storm.calm(p.network.Loss)
	if w.Failure() == nil {
		w.awaitLeaders(p.bound())
	}
	for range p.probes {
		if w.Failure() == nil {
			storm.probe(p.network.Loss)
			w.awaitLeaders(p.bound())
		}
	}
	if s.Cluster && w.Failure() == nil {
		storm.calm(0)
		m := &calmPhase{world: w, rnd: newStream(s.Seed, "muster"), member: p.member, bound: p.bound()}
		m.run(3)
	}
	stop()
	w.Close()
	result.Violation, result.Terms, result.Lasted = w.Failure(), w.checker.count(), w.now()
	result.Replayed, result.Steps, result.Frozen = w.replay.checker.Steps, w.replay.history, w.replay.checker.Frozen
}

// checkEvery checks the nodes at fixed times.
func (w *World) checkEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.mu.Lock()
			w.checker.check()
			w.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// awaitLeaders checks invariant 7: every role has been led within the bound.
func (w *World) awaitLeaders(bound time.Duration) {
	until := w.now() + bound
	led := map[string]bool{}
	for len(led) < len(w.roleNames) && w.now() < until && w.Failure() == nil {
		time.Sleep(5 * time.Millisecond)
		w.undrainAll()
		w.mu.Lock()
		for _, role := range w.roleNames {
			if len(w.checker.leading(role)) > 0 {
				led[role] = true
			}
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, role := range w.roleNames {
		if !led[role] {
			w.checker.violate(7, "no node leads %s, %v after all faults ended", role, bound)
		}
	}
}

// undrainAll undrains the nodes that still drain after all faults have ended, at
// earlier requests.
func (w *World) undrainAll() {
	w.mu.Lock()
	alive := slices.DeleteFunc(w.alive(), func(p *Process) bool { return p.node == nil || p.doing > 0 })
	w.mu.Unlock()
	for _, p := range alive {
		if p.node.Description().Status == tenure.StatusDraining {
			w.mu.Lock()
			p.undrain()
			w.mu.Unlock()
		}
	}
}

// ReplayCommand is how to run one schedule again, with its whole transcript.
func ReplayCommand(seed uint64) string {
	return fmt.Sprintf("go test ./lab/sim -run 'TestReplayPrintsItsTranscript$' -v -args -seed=%d", seed)
}
