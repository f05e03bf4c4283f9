package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// candidacy is a role for which this member campaigns, or that it leads.
type candidacy struct {
	name     string
	election *tenure.Election
	stop     context.CancelFunc // of standing; a term is given up

	// Guarded by Spread.mu.
	handingOver bool // it is being handed over
}

// cooldown is how long this member leaves a role alone.
type cooldown struct {
	until time.Duration // on the monotonic clock
	times int           // how often in a row work returned early
	done  bool          // for good: work said so
}

// startCampaignLocked starts a campaign for a role, which begins when the gate is
// closed: roles that are tried together take fewer statements.
func (s *spreadRun) startCampaignLocked(name string, gate <-chan struct{}) error {
	election := s.elections[name]
	if election == nil {
		var err error
		election, err = s.member.node.ElectionWith(s.roles[name], s.config.Election)
		if err != nil {
			return err
		}
		s.elections[name] = election
	}
	ctx, stop := context.WithCancel(s.ctx)
	c := &candidacy{name: name, election: election, stop: stop}
	s.candidacies[name] = c
	s.group.Go(func() {
		defer stop()
		<-gate
		s.campaign(ctx, c)
	})
	return nil
}

// campaign campaigns for a role and leads it once.
func (s *spreadRun) campaign(ctx context.Context, c *candidacy) {
	var early, done, asked bool
	err := c.election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		s.entered()
		err := s.work(ctx, term)
		early, done = ctx.Err() == nil, errors.Is(err, tenure.Done)
		asked = errors.Is(context.Cause(ctx), tenure.ErrHandedOver) || errors.Is(context.Cause(ctx), tenure.ErrSteppedDown)
		return err
	})
	node, timing := s.member.node, s.member.node.Timing()
	if err != nil && !errors.Is(err, tenure.ErrStopped) && ctx.Err() == nil {
		node.Logger().Warn("campaigning for a role failed", "role", c.name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.candidacies, c.name)
	last := s.cooldowns[c.name]
	now := node.Clock().Now().Mono
	switch {
	case done:
		s.cooldowns[c.name] = cooldown{done: true}
	case early:
		pause := tenure.ExponentialBackoff{Base: timing.CheckInterval, Max: 12 * timing.CheckInterval}
		delay, _ := pause.NextDelay(tenure.RetryContext{Attempt: last.times + 1})
		s.cooldowns[c.name] = cooldown{until: now + delay, times: last.times + 1}
	case asked: // the others go first; a hand-over reserves the role for as long
		s.cooldowns[c.name] = cooldown{until: now + timing.CheckInterval}
		s.surprised = true
	case err != nil:
		s.cooldowns[c.name] = cooldown{until: now + timing.CheckInterval}
	default:
		delete(s.cooldowns, c.name)
	}
	s.dirty = true
	s.broadcastLocked()
	s.poke()
}

// entered makes room for the next roles that others give.
func (s *spreadRun) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ahead {
		s.dirty = true
		s.poke()
	}
}

// handOver hands the role over to a node, or steps down if target is uuid.Nil, and
// waits until the role is free. The record of the term names whoever asked the node
// to drain.
func (c *candidacy) handOver(ctx context.Context, target uuid.UUID) error {
	var err error
	d := c.election.Node().Description()
	switch asked := d.Status == Draining && d.StatusBy != ""; {
	case target != uuid.Nil && asked:
		err = c.election.HandleRequest(ctx, tenure.Request{Kind: tenure.RequestHandOver, Target: target, By: d.StatusBy})
	case target != uuid.Nil:
		err = c.election.HandOver(ctx, target)
	case asked:
		err = c.election.HandleRequest(ctx, tenure.Request{Kind: tenure.RequestStepDown, By: d.StatusBy})
	default:
		err = c.election.StepDown(ctx)
	}
	if errors.Is(err, tenure.ErrNotLeader) {
		c.stop()
		err = nil
	}
	return err
}
