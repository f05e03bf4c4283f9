package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster/internal/placement"
)

// leaveTimeout limits each step of leaving: updating the registry and handing
// over the roles.
const leaveTimeout = 10 * time.Second

// run shares the roles until ctx ends.
func (s *spreadRun) run(ctx context.Context) error {
	defer s.group.Wait()
	defer s.cancel()
	defer s.member.beforeRelease(s.handOverAll)()
	defer s.member.node.OnOffer(s.acceptsOffer)()
	if err := s.publishMembership(ctx, true); err != nil {
		s.leave(ctx, false) // the registry may show the membership nevertheless, or later
		if ctx.Err() != nil {
			return nil
		}
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

// publishMembership records in the registry whether this member shares the roles. Without
// a session, the registry is updated later.
func (s *spreadRun) publishMembership(ctx context.Context, joins bool) error {
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

// leave removes this member from the spread and, if the loop still runs, hands
// over its roles.
func (s *spreadRun) leave(ctx context.Context, handOver bool) {
	ctx = context.WithoutCancel(ctx)
	if s.member.ctx.Err() != nil {
		return // closing the node releases the roles
	}
	if err := s.publishMembership(ctx, false); err != nil {
		s.member.node.Logger().Warn("removing this node from the spread failed", "spread", s.name, "error", err)
		return
	}
	if handOver {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		_ = s.handOverAll(ctx) // closing the elections releases the rest
	}
}

// loop follows the cluster until ctx ends; this is not an error.
func (s *spreadRun) loop(ctx context.Context) error {
	node := s.member.node
	wakeups, stopNews := node.Subscribe()
	defer stopNews()
	clock, a := node.Clock(), &s.assumption
	notified := false
	var last <-chan struct{}
	for {
		members, changed := s.member.view.members()
		now := clock.Now().Mono
		switch {
		case a.updateMembers(participants(members, s.name), now):
			if notified = false; a.leaders != nil {
				s.replan()
			}
		case s.takeUnplannedMove(), notified && changed != last: // the notification was not about nodes
			notified = false
			a.scheduleRead(now, node.Timing().CheckInterval, s.pausing(now))
		}
		last = changed
		if a.leaders == nil || now >= a.nextRead {
			if err := s.readLeaders(ctx); err != nil {
				return err
			}
			now = clock.Now().Mono
		}
		s.adoptOffered(now, node.Timing().CheckInterval)
		next, err := s.apply(now)
		if err != nil {
			return err
		}
		woken, err := s.wait(ctx, min(next, a.nextRead)-now, changed, wakeups)
		if err != nil || ctx.Err() != nil {
			return err
		}
		notified = notified || woken
	}
}

// wait waits until the loop may have something to do. It reports whether the
// node sent a notification.
func (s *spreadRun) wait(ctx context.Context, d time.Duration, changed, wakeups <-chan struct{}) (notified bool, err error) {
	timeout := make(chan struct{})
	defer s.member.node.Clock().AfterFunc(max(d, time.Millisecond), func() { close(timeout) })()
	select {
	case <-changed:
	case <-wakeups:
		notified = true
	case <-s.wake:
	case <-timeout:
	case <-s.member.ctx.Done():
		err = tenure.ErrClosed
	case <-ctx.Done():
	}
	return notified, err
}

func (s *spreadRun) takeUnplannedMove() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	surprised := s.unplannedMove
	s.unplannedMove = false
	return surprised
}

// replan makes a plan from the assumption.
func (s *spreadRun) replan() {
	a := &s.assumption
	s.mu.Lock()
	for name, c := range s.candidacies {
		if c.election.IsLeader() {
			a.leaders[name] = a.self
		}
	}
	s.mu.Unlock()
	plan := placement.Make(placement.Input{Nodes: a.nodes, Roles: s.placementRoles, Leaders: a.leaders})
	a.assume(plan)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Another member has its own time to lead a role.
	maps.DeleteFunc(a.vacant, func(role string, _ time.Duration) bool { return plan.Placed[role] != s.plan.Placed[role] })
	if !maps.Equal(s.plan.Placed, plan.Placed) {
		s.planVersion++
	}
	s.plan, s.leaving, s.dirty = plan, a.leaving(), true
	s.broadcastLocked()
}

// readLeaders reads the leaders and makes a new plan if they are not the
// planned ones.
func (s *spreadRun) readLeaders(ctx context.Context) error {
	node, a := s.member.node, &s.assumption
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
			node.Logger().Warn("reading the leaders of the shared roles failed", "spread", s.name, "error", err)
		}
		a.nextRead = now + interval/10
		return nil
	}
	a.readAt, a.cost = now, now-begun
	live := make(map[uuid.UUID]bool, len(a.nodes))
	for _, n := range a.nodes {
		live[n.ID] = true
	}
	holders := make(map[string]uuid.UUID, len(found))
	for _, h := range found {
		if live[h.Node] {
			holders[h.Role] = h.Node
		}
	}
	s.compareWithPlan(maps.Clone(holders), now)
	s.adoptReserved(found, now, interval)
	a.nextRead = now + interval + a.checkWindow()/4
	// The target of a reservation may never lead the role, without any report.
	reserved := slices.ContainsFunc(found, func(h tenure.RoleHolder) bool { return h.Reserved })
	// If the leaders stay the same, also against the plan, their next change is reported.
	// Without this rule, a node with failing work would make all members read all roles
	// again and again.
	stays := len(a.vacant) == 0 && maps.Equal(holders, a.found)
	a.found = holders
	if (a.confirmed || stays) && !reserved {
		const intervals = 12
		a.nextRead = now + intervals*(interval+a.checkWindow())
	}
	return nil
}

// compareWithPlan confirms the plan if it has taken effect, and replans otherwise.
func (s *spreadRun) compareWithPlan(holders map[string]uuid.UUID, now time.Duration) {
	a := &s.assumption
	first := a.leaders == nil
	s.mu.Lock()
	planned := s.plan
	s.mu.Unlock()
	if a.confirmed = !first && maps.Equal(holders, planned.Placed); a.confirmed {
		a.vacant = nil
		return
	}
	vacant := maps.Clone(a.vacant)
	a.leaders = holders
	s.replan()
	s.mu.Lock()
	plan := s.plan
	s.mu.Unlock()
	if !first && !maps.Equal(plan.Placed, planned.Placed) {
		a.changedAt = now
	}
	a.confirmed = maps.Equal(holders, plan.Placed)
	s.updateVacant(holders, plan, vacant, now)
	a.adoptVacant(s.placementRoles, plan, now, s.member.node.Timing().CheckInterval)
}

// updateVacant records the vacant roles of other members, and since when. A member with
// more roles than before is not idle: it takes over many.
func (s *spreadRun) updateVacant(holders map[string]uuid.UUID, plan placement.Plan, before map[string]time.Duration, now time.Duration) {
	a := &s.assumption
	proceeds := a.countLed(holders)
	vacant := map[string]time.Duration{}
	for name, node := range plan.Placed {
		if holder, held := holders[name]; held || node == a.self {
			if holder == node {
				delete(a.givenBack, name)
			}
			continue
		}
		if since, known := before[name]; known && !proceeds[node] {
			vacant[name] = since
		} else {
			vacant[name] = now
		}
	}
	a.vacant = vacant
}
