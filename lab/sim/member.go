package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/retry"
)

// Member says how a process runs the engine.
type Member struct {
	Config   tenure.Config // without Name, Clock, Logger and Retry
	Election tenure.ElectionConfig
	Work     Work
	Cluster  *cluster.Config       // if set, the process is a member of a cluster
	Spread   *cluster.SpreadConfig // if set, the members share the roles; without Roles

	// Wrap, if set, puts something between the engine and the database or the
	// clock: an engine that is broken on purpose.
	Wrap func(cluster.Store, *Clock) cluster.Store
}

// closeTimeout is how long a node may take to close.
const closeTimeout = time.Minute

// Start starts a process on the machine that campaigns for every role of the world
// until it crashes or the world closes.
func (m *Machine) Start(member Member) *Process {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.member = member
	return m.start()
}

// start starts a process with the configuration of the machine's earlier ones.
func (m *Machine) start() *Process {
	p, member := m.newProcess(), m.member
	m.world.log(p.name, "starts")
	m.world.group.Go(func() {
		defer close(p.ended)
		p.live(member)
	})
	return p
}

// live runs a node from its opening to its end.
func (p *Process) live(member Member) {
	w := p.machine.world
	var store cluster.Store = p.database()
	if member.Wrap != nil {
		store = member.Wrap(store, p.machine.clock)
	}
	config := member.Config
	config.Name, config.Clock, config.Logger = p.name, p.machine.clock, p.logger()
	config.Retry, config.Load = p.retry(config.CheckInterval), p.load
	var node *tenure.Node
	var leave func(context.Context) error
	for {
		var err error
		if node, leave, err = p.open(store, config, member.Cluster); err == nil {
			break
		}
		if p.ctx.Err() != nil {
			return
		}
		p.log("cannot open: %v", err)
		if !p.sleep(p.ctx, time.Second) {
			return
		}
	}
	w.mu.Lock()
	p.node = node
	w.mu.Unlock()
	// A program may end either the context of Run or the node first: chance decides.
	running, byContext := context.Background(), p.rnd.fork().chance(0.5)
	if byContext {
		running = p.ctx
	}
	var standing sync.WaitGroup
	defer standing.Wait()
	if member.Spread != nil {
		standing.Go(func() { p.share(running, member) })
	} else {
		p.campaignForAll(running, member, &standing)
	}
	<-p.ctx.Done()
	if byContext {
		standing.Wait()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer p.machine.clock.AfterFunc(closeTimeout, cancel)()
	err := leave(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	p.log("closed: %v", err)
	if err != nil && !p.crashed {
		w.checker.violate(0, "%s does not close: %v", p, err)
	}
}

// campaignForAll campaigns for every role of the world.
func (p *Process) campaignForAll(ctx context.Context, member Member, standing *sync.WaitGroup) {
	w := p.machine.world
	for _, role := range w.roleNames {
		election, err := p.node.ElectionWith(tenure.NamedRole(role), member.Election)
		if err != nil {
			panic(err) // the roles of a world are distinct and valid
		}
		w.mu.Lock()
		p.elections[role] = election
		w.mu.Unlock()
		p.listen(election)
		rnd := w.stream(p.name + " work on " + role)
		standing.Go(func() { p.campaign(ctx, election, member.Work, rnd) })
	}
}

// campaign runs an election, and runs it again if it stops without being asked to. It
// begins at its own instant.
func (p *Process) campaign(ctx context.Context, election *tenure.Election, work Work, rnd *stream) {
	p.sleep(p.ctx, rnd.between(0, time.Millisecond))
	for p.ctx.Err() == nil {
		err := election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			return p.lead(ctx, term, work, rnd)
		})
		p.log("no longer campaigns for %s: %v", election.Role(), err)
		if errors.Is(err, tenure.ErrClosed) || !p.sleep(p.ctx, time.Second) {
			return
		}
	}
}

// retry waits for the check interval when others lead, and a short but growing
// time after an error, without jitter, so that runs can be repeated.
func (p *Process) retry(check time.Duration) retry.Strategy {
	again := retry.ExponentialBackoff{Base: 100 * time.Millisecond, Max: 2 * time.Second}
	return retry.Func(func(a retry.Failure) (time.Duration, bool) {
		p.enter(ofRetry)
		if errors.Is(a.LastError, tenure.ErrLock) {
			return check, true
		}
		return again.NextDelay(a)
	})
}

// sleep waits on the machine's clock and reports whether the context has not ended.
func (p *Process) sleep(ctx context.Context, d time.Duration) bool {
	passed := make(chan struct{})
	stop := p.machine.clock.AfterFunc(d, func() { close(passed) })
	defer stop()
	select {
	case <-passed:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// trusts returns the number of the term of a role that the process trusts, or 0.
func (p *Process) trusts(role string) int64 {
	election := p.elections[role]
	if election == nil {
		return 0
	}
	// IsLeader is what programs ask; Term follows it.
	if !election.IsLeader() {
		return 0
	}
	if term := election.Term(); term != nil {
		return term.Number()
	}
	if work := p.work[role]; work != nil {
		return work.term // the engine reports that it leads, although the term may have ended
	}
	return 0
}

// request sends a request of the process to the leader of a role, or to a node.
func (p *Process) request(r tenure.Request) {
	database := p.database()
	p.do(func() {
		err := database.Request(p.ctx, r)
		p.log("asked for %s of %s: %v", r.Kind, r.Role, err)
	})
}

// do runs f in another goroutine of the process. It is called with World.mu held.
func (p *Process) do(f func()) {
	w := p.machine.world
	if w.closing || p.crashed {
		return
	}
	p.doing++
	w.group.Go(func() {
		f()
		w.mu.Lock()
		defer w.mu.Unlock()
		p.doing--
	})
}

// stepDown makes the process step down from a role, as its program would.
func (p *Process) stepDown(r tenure.Request, patience time.Duration) {
	election := p.elections[r.Role]
	if election == nil {
		return
	}
	p.do(func() {
		ctx, cancel := p.withPatience(patience)
		defer cancel()
		var err error
		if r.Kind == tenure.RequestHandOver {
			err = election.HandOver(ctx, r.Target)
		} else {
			err = election.StepDown(ctx)
		}
		p.log("stepped down from %s: %v", r.Role, err)
	})
}

// withPatience returns a context of the process that ends after a time on its clock.
func (p *Process) withPatience(patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.ctx)
	stop := p.machine.clock.AfterFunc(patience, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
