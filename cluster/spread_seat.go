package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// seat is a role for which this member stands, or that it leads.
type seat struct {
	name     string
	election *tenure.Election
	stop     context.CancelFunc // of standing; a term is given up

	// Under the spread's mutex.
	giving bool // it is being handed over
}

// rest is for how long this member leaves a role alone.
type rest struct {
	until time.Duration // on the monotonic clock
	times int           // how often in a row work returned early
	done  bool          // for good: work said so
}

// stand begins to stand for a role when the gate is opened: roles that are taken
// at once take fewer statements. Under the spread's mutex.
func (s *steering) stand(name string, gate <-chan struct{}) error {
	election := s.elections[name]
	if election == nil {
		var err error
		election, err = s.member.node.ElectionWith(s.roles[name], s.config.Election)
		if err != nil {
			return err
		}
		s.elections[name] = election
	}
	ctx, stop := context.WithCancel(s.standing)
	seat := &seat{name: name, election: election, stop: stop}
	s.seats[name] = seat
	s.group.Go(func() {
		defer stop()
		<-gate
		s.occupy(ctx, seat)
	})
	return nil
}

// occupy stands for a role, and leads it once.
func (s *steering) occupy(ctx context.Context, seat *seat) {
	var early, done, asked bool
	err := seat.election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		s.entered()
		err := s.work(ctx, term)
		early, done = ctx.Err() == nil, errors.Is(err, tenure.Done)
		asked = errors.Is(context.Cause(ctx), tenure.ErrHandedOver) || errors.Is(context.Cause(ctx), tenure.ErrSteppedDown)
		return err
	})
	node, timing := s.member.node, s.member.node.Timing()
	if err != nil && !errors.Is(err, tenure.ErrStopped) && ctx.Err() == nil {
		node.Logger().Warn("standing for a role failed", "role", seat.name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seats, seat.name)
	last := s.rests[seat.name]
	now := node.Clock().Now().Mono
	switch {
	case done:
		s.rests[seat.name] = rest{done: true}
	case early:
		pause := tenure.ExponentialBackoff{Base: timing.CheckInterval, Max: 12 * timing.CheckInterval}
		delay, _ := pause.NextDelay(tenure.Attempts{Attempt: last.times + 1})
		s.rests[seat.name] = rest{until: now + delay, times: last.times + 1}
	case asked: // the others go first; a hand-over reserves the role for as long
		s.rests[seat.name] = rest{until: now + timing.CheckInterval}
		s.surprised = true
	case err != nil:
		s.rests[seat.name] = rest{until: now + timing.CheckInterval}
	default:
		delete(s.rests, seat.name)
	}
	s.dirty = true
	s.broadcast()
	s.poke()
}

// entered makes room for the next roles that others give.
func (s *steering) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ahead {
		s.dirty = true
		s.poke()
	}
}

// handOver gives the seat's role to another node, or to nobody, and waits until
// it is free. If somebody has asked the node to drain, the term ends by them.
func (seat *seat) handOver(ctx context.Context, target uuid.UUID) error {
	var err error
	d := seat.election.Node().Description()
	switch asked := d.Status == Draining && d.StatusBy != ""; {
	case target != uuid.Nil && asked:
		err = seat.election.Comply(ctx, tenure.Request{Kind: tenure.RequestHandOver, Target: target, By: d.StatusBy})
	case target != uuid.Nil:
		err = seat.election.HandOver(ctx, target)
	case asked:
		err = seat.election.Comply(ctx, tenure.Request{Kind: tenure.RequestStepDown, By: d.StatusBy})
	default:
		err = seat.election.StepDown(ctx)
	}
	if errors.Is(err, tenure.ErrNotLeader) {
		seat.stop()
		err = nil
	}
	return err
}
