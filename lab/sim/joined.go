package sim

import (
	"context"
	"errors"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// open opens the node of the process, and joins the cluster if there is one.
func (p *Process) open(store cluster.Store, config tenure.Config, join *cluster.Config) (_ *tenure.Node, leave func(context.Context) error, _ error) {
	if join == nil {
		node, err := tenure.Open(p.ctx, store, config)
		if err != nil {
			return nil, nil, err
		}
		return node, node.Close, nil
	}
	member, err := cluster.Join(p.ctx, store, config, *join)
	if err != nil {
		return nil, nil, err
	}
	p.machine.world.mu.Lock()
	defer p.machine.world.mu.Unlock()
	p.member = member
	if p.rnd.chance(0.5) {
		return member.Node(), member.Close, nil
	}
	return member.Node(), member.Shutdown, nil
}

// share shares the roles of the world with the other members.
func (p *Process) share(ctx context.Context, member Member) {
	w := p.machine.world
	config := *member.Spread
	streams := map[string]*stream{}
	for _, role := range w.roleNames {
		config.Roles = append(config.Roles, cluster.SpreadRole{Role: tenure.NamedRole(role)})
		streams[role] = w.stream(p.name + " work on " + role)
	}
	spread, err := p.member.Spread("roles", config)
	if err != nil {
		panic(err) // the roles of a world are distinct and valid
	}
	for p.ctx.Err() == nil {
		err := spread.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			p.enterElections()
			return p.lead(ctx, term, member.Work, streams[term.Role().Name()])
		})
		p.log("shares the roles no more: %v", err)
		if errors.Is(err, tenure.ErrClosed) || !p.sleep(p.ctx, time.Second) {
			return
		}
	}
}

// enterElections records the elections that were not created by the process itself.
func (p *Process) enterElections() {
	elections := p.node.Elections() // before World.mu is locked: the node has its own mutex
	p.machine.world.mu.Lock()
	defer p.machine.world.mu.Unlock()
	for _, election := range elections {
		p.elections[election.Role().Name()] = election
	}
}

// drain drains the node of the process, as its program would.
func (p *Process) drain(patience time.Duration) {
	if p.node == nil {
		return
	}
	p.do(func() {
		ctx, cancel := p.withPatience(patience)
		defer cancel()
		p.log("drains")
		var err error
		if p.member != nil {
			err = p.member.Drain(ctx)
		} else {
			err = p.node.Drain(ctx, nil)
		}
		p.log("drained: %v", err)
	})
}

// undrain reverses drain.
func (p *Process) undrain() {
	if p.node == nil {
		return
	}
	p.do(func() {
		var err error
		if p.member != nil {
			err = p.member.Undrain(p.ctx)
		} else {
			err = p.node.Undrain(p.ctx)
		}
		p.log("serves again: %v", err)
	})
}
