package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// startCampaignLocked starts a campaign, which waits until gate is closed. Campaigns begun
// together need fewer statements.
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
	var early, done bool
	var begun time.Duration
	cause := func() error { return nil } // why the term has ended, if there was one
	err := c.election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		begun = s.member.node.Clock().Now().Mono
		s.admitMore()
		err := s.work(ctx, term)
		early, done = ctx.Err() == nil, errors.Is(err, tenure.Done)
		cause = func() error { return context.Cause(ctx) }
		return err
	})
	// Only now does the context have its cause: work ended by Stopping returns before the
	// context is canceled.
	asked := errors.Is(cause(), tenure.ErrHandedOver) || errors.Is(cause(), tenure.ErrSteppedDown)
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
	case asked: // let others campaign first; a reservation lasts as long
		s.cooldowns[c.name] = cooldown{until: now + timing.CheckInterval, asked: true}
		s.givenUp[c.name], s.unplannedMove = true, true
	case early:
		longest := 12 * timing.CheckInterval
		if now-begun >= longest { // a long term begins a new series
			last.times = 0
		}
		pause := retry.ExponentialBackoff{Base: timing.CheckInterval, Max: longest}
		delay, _ := pause.NextDelay(retry.Failure{Attempt: last.times + 1})
		s.cooldowns[c.name] = cooldown{until: now + delay, times: last.times + 1}
	case err != nil && !errors.Is(err, tenure.ErrTermEnded): // else the session was lost, and the next one may acquire the role
		s.cooldowns[c.name] = cooldown{until: now + timing.CheckInterval}
	default:
		delete(s.cooldowns, c.name)
	}
	s.dirty = true
	s.broadcastLocked()
	s.wakeLoop()
}

// admitMore lets the loop campaign for the next roles of a large handover.
func (s *spreadRun) admitMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.campaignsWaiting {
		s.dirty = true
		s.wakeLoop()
	}
}

// handOver hands the role over to a node, or steps down if target is uuid.Nil,
// and waits until the role is released. If the node drains on request, the
// term's record names the requester.
func (c *candidacy) handOver(ctx context.Context, target uuid.UUID) error {
	var err error
	d := c.election.Node().Description()
	switch asked := d.Status == Draining && d.StatusBy != ""; {
	case target != uuid.Nil && asked:
		err = c.election.HandleRequest(ctx, tenure.Request{Kind: tenure.RequestHandOver, Target: target, By: d.StatusBy})
	case target != uuid.Nil && c.asksTarget:
		err = c.election.HandOver(ctx, target)
	case target != uuid.Nil:
		// Not HandOver: a planned target may be joining and begin to campaign a moment
		// later.
		err = c.election.HandleRequest(ctx, tenure.Request{Kind: tenure.RequestHandOver, Target: target})
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
