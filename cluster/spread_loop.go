package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
)

// leaveTimeout bounds each step of leaving: to tell the others, and to hand the
// roles over.
const leaveTimeout = 10 * time.Second

// spreadRun is one run of a spread. Its loop decides which roles this member
// campaigns for and which it hands over.
type spreadRun struct {
	*Spread
	work       tenure.Work
	assumption assumption
	ctx        context.Context // of everything that the run starts
	cancel     context.CancelFunc
	group      sync.WaitGroup

	// Guarded by Spread.mu.
	cooldowns map[string]cooldown
	surprised bool          // a role went to others without having been planned to
	moving    bool          // roles are being handed over
	ahead     bool          // there are more roles to come than this member stands for
	edition   int           // counts the plans
	again     time.Duration // when to apply the plan again, although nothing has changed
}

func newSpreadRun(ctx context.Context, s *Spread, work tenure.Work) *spreadRun {
	r := &spreadRun{Spread: s, work: work, cooldowns: map[string]cooldown{}}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.assumption = assumption{
		self: s.member.node.ID(), roles: len(s.names), adopted: map[string]time.Duration{},
	}
	return r
}

// run takes part until the context ends.
func (s *spreadRun) run(ctx context.Context) error {
	defer s.group.Wait()
	defer s.cancel()
	defer s.member.beforeRelease(s.handOverAll)()
	if err := s.takePart(ctx, true); err != nil {
		return err
	}
	s.group.Go(func() { s.saveDefinition(s.ctx) })

	looping, halt := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	s.group.Go(func() { ended <- s.loop(looping) })
	defer halt()
	select {
	case err := <-ended:
		s.leave(ctx, false)
		return err
	case <-ctx.Done():
	}
	s.leave(ctx, true)
	return nil
}

// takePart tells the others that this member shares the roles, or does not any
// more. If there is no session just now, the registry follows.
func (s *spreadRun) takePart(ctx context.Context, joins bool) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	err := s.member.node.UpdateDescription(ctx, func(d *tenure.Description) {
		if !joins {
			delete(d.Spreads, s.name)
			return
		}
		if d.Spreads == nil {
			d.Spreads = map[string]float64{}
		}
		d.Spreads[s.name] = s.config.Weight
	})
	if errors.Is(err, tenure.ErrSessionLost) {
		return nil
	}
	return err
}

// leave takes this member out and, if there is a loop to do it, hands over.
func (s *spreadRun) leave(ctx context.Context, handOver bool) {
	ctx = context.WithoutCancel(ctx)
	if s.member.life.Err() != nil {
		return // the node resigns
	}
	if err := s.takePart(ctx, false); err != nil {
		s.member.node.Logger().Warn("telling the others that this node shares roles no more failed", "spread", s.name, "error", err)
		return
	}
	if handOver {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		_ = s.handOverAll(ctx) // what is left is resigned
	}
}

// loop follows the cluster until the context ends, which is no error.
func (s *spreadRun) loop(ctx context.Context) error {
	node := s.member.node
	news, stopNews := node.Subscribe()
	defer stopNews()
	clock, b := node.Clock(), &s.assumption
	heard := false
	var last <-chan struct{}
	for {
		members, changed := s.member.view.members()
		now := clock.Now().Mono
		switch {
		case b.updateMembers(participants(members, s.name), now):
			if heard = false; b.holders != nil {
				s.replan()
			}
		case s.wasSurprised(), heard && changed != last: // the registry was read since, and the news is not there
			heard = false
			b.scheduleRead(now, node.Timing().CheckInterval)
		}
		last = changed
		if b.holders == nil || now >= b.nextRead {
			if err := s.look(ctx); err != nil {
				return err
			}
			now = clock.Now().Mono
		}
		next, err := s.apply(now)
		if err != nil {
			return err
		}
		news, err := s.wait(ctx, min(next, b.nextRead)-now, changed, news)
		if err != nil || ctx.Err() != nil {
			return err
		}
		heard = heard || news
	}
}

// wait waits until there may be something to do and reports whether there is
// news.
func (s *spreadRun) wait(ctx context.Context, d time.Duration, changed, news <-chan struct{}) (heard bool, err error) {
	timeout := make(chan struct{})
	defer s.member.node.Clock().AfterFunc(max(d, time.Millisecond), func() { close(timeout) })()
	select {
	case <-changed:
	case <-news:
		heard = true
	case <-s.wake:
	case <-timeout:
	case <-s.member.life.Done():
		err = tenure.ErrClosed
	case <-ctx.Done():
	}
	return heard, err
}

func (s *spreadRun) wasSurprised() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	surprised := s.surprised
	s.surprised = false
	return surprised
}

// replan makes a plan from what is assumed.
func (s *spreadRun) replan() {
	b := &s.assumption
	s.mu.Lock()
	for name, c := range s.candidacies {
		if c.election.IsLeader() {
			b.holders[name] = b.self
		}
	}
	s.mu.Unlock()
	plan := placement.Make(placement.Question{Nodes: b.nodes, Roles: s.places, Holders: b.holders})
	b.assume(plan)
	b.vacant = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.plan.Placed, plan.Placed) {
		s.edition++
	}
	s.plan, s.leaves, s.dirty = plan, b.leaves(), true
	s.broadcastLocked()
}

// look reads who leads what and plans anew if that is not what was thought.
func (s *spreadRun) look(ctx context.Context) error {
	node, b := s.member.node, &s.assumption
	interval := node.Timing().CheckInterval
	limited, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	begun := node.Clock().Now().Mono
	found, err := node.Holders(limited, s.names)
	now := node.Clock().Now().Mono
	switch {
	case errors.Is(err, tenure.ErrClosed), errors.Is(err, tenure.ErrUnsupported):
		return err
	case err != nil:
		if ctx.Err() == nil && !errors.Is(err, tenure.ErrSessionLost) {
			node.Logger().Warn("reading who leads the shared roles failed", "spread", s.name, "error", err)
		}
		b.nextRead = now + interval/10
		return nil
	}
	b.readAt, b.cost = now, now-begun
	live := make(map[uuid.UUID]bool, len(b.nodes))
	for _, n := range b.nodes {
		live[n.ID] = true
	}
	first := b.holders == nil
	holders := make(map[string]uuid.UUID, len(found))
	for _, h := range found {
		if live[h.Node] {
			holders[h.Role] = h.Node
		}
		if h.Reserved && h.Node == b.self && !b.leaves() {
			b.keep(h.Role, now, interval)
		}
	}
	s.mu.Lock()
	planned := s.plan
	s.mu.Unlock()
	if b.settled = !first && maps.Equal(holders, planned.Placed); !b.settled {
		vacant := b.vacant
		b.holders = holders
		s.replan()
		s.mu.Lock()
		plan := s.plan
		s.mu.Unlock()
		if !first && !maps.Equal(plan.Placed, planned.Placed) {
			b.changedAt = now
		}
		b.settled = maps.Equal(holders, plan.Placed)
		s.noteVacant(holders, plan, vacant, now)
		b.adopt(s.places, plan, now, interval)
	}
	b.nextRead = now + interval + b.window()/4
	if b.settled {
		const intervals = 12
		b.nextRead = now + intervals*(interval+b.window())
	}
	return nil
}

// noteVacant notes which roles of others nobody leads, and since when.
func (s *spreadRun) noteVacant(holders map[string]uuid.UUID, plan placement.Plan, before map[string]time.Duration, now time.Duration) {
	b := &s.assumption
	vacant := map[string]time.Duration{}
	for name, node := range plan.Placed {
		if _, held := holders[name]; held || node == b.self {
			continue
		}
		if since, known := before[name]; known {
			vacant[name] = since
		} else {
			vacant[name] = now
		}
	}
	b.vacant = vacant
}
