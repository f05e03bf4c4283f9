package cluster

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/wakeup"
)

// Roles are handed over in batches. The next batch begins when the last has been taken
// over: in a long queue, roles would stay vacant. After movePause it begins even if work
// or a target is slow. On a busy machine, a batch of hundreds of roles takes as long as
// one of ten.
const (
	moveBatch = 512
	movePause = 250 * time.Millisecond
	// moveAhead is the maximum number of roles of one leader for which a member campaigns
	// at a time, in the order of the handover.
	moveAhead = 2 * moveBatch
)

// transfer is a role to hand over; if target is uuid.Nil, to any node.
type transfer struct {
	candidacy *candidacy
	target    uuid.UUID
}

// apply campaigns for the roles placed here by the plan and hands over the others. It
// returns when to apply the plan again if nothing changes first.
func (s *spreadRun) apply(now time.Duration) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dirty && now < s.nextApply {
		return s.nextApply, nil
	}
	s.nextApply, s.campaignsWaiting = math.MaxInt64, false
	var transfers []transfer
	gate, awaited := make(chan struct{}), map[uuid.UUID]int{}
	defer close(gate)
	for _, name := range s.names {
		c := s.candidacies[name]
		if !s.belongsHereLocked(name, now) {
			if t, ok := s.withdrawLocked(c); ok {
				transfers = append(transfers, t)
			}
			continue
		}
		ahead := s.aheadLocked(name, awaited)
		if c != nil {
			continue
		}
		if err := s.campaignWhenDueLocked(name, ahead, now, gate); err != nil {
			return 0, err
		}
	}
	s.dirty = false
	if len(transfers) > 0 && !s.transferring {
		s.beginTransfersLocked(transfers, now)
	}
	return s.nextApply, nil
}

// applyByLocked schedules another apply at a time, or earlier.
func (s *spreadRun) applyByLocked(at time.Duration) { s.nextApply = min(s.nextApply, at) }

// belongsHereLocked reports whether this member should lead a role: the plan
// places it here, or this member has adopted it for a while.
func (s *spreadRun) belongsHereLocked(name string, now time.Duration) bool {
	a := &s.assumption
	if target, placed := s.plan.Placed[name]; placed && target == a.self {
		return true
	}
	until, adopted := a.adopted[name]
	if !adopted || s.leaving {
		return false
	}
	if until <= now {
		delete(a.adopted, name)
		return false
	}
	s.applyByLocked(until)
	return true
}

// aheadLocked counts the roles each node has yet to hand over to this member. It reports
// whether a role has to wait for earlier ones.
func (s *spreadRun) aheadLocked(name string, awaited map[uuid.UUID]int) bool {
	if c := s.candidacies[name]; c != nil && c.election.State() == tenure.Leading {
		return false
	}
	leader := s.assumption.previousLeader(name)
	if leader == uuid.Nil {
		return false
	}
	awaited[leader]++
	return awaited[leader] > moveAhead
}

// campaignWhenDueLocked starts a campaign for a role of this member, unless it has to
// wait.
func (s *spreadRun) campaignWhenDueLocked(name string, ahead bool, now time.Duration, gate <-chan struct{}) error {
	pause := s.cooldowns[name]
	// After giving up a role, this member leaves it to others until one of them leads.
	left := pause.asked && s.assumption.previousLeader(name) != uuid.Nil
	switch {
	case pause.until > now && !left:
		s.applyByLocked(pause.until)
	case ahead:
		s.campaignsWaiting = true
	case !pause.done:
		return s.startCampaignLocked(name, gate)
	}
	return nil
}

// withdrawLocked stops campaigning for a role of another member. If this member leads the
// role, it returns the transfer to make. A leaving member keeps a role if no other node
// may lead it.
func (s *spreadRun) withdrawLocked(c *candidacy) (t transfer, ok bool) {
	if c == nil || c.handingOver {
		return transfer{}, false
	}
	if c.election.State() != tenure.Leading {
		c.stop()
		delete(s.assumption.standsIn, c.name)
		return transfer{}, false
	}
	// The target did not lead the role before and may still not campaign for it.
	c.asksTarget = s.assumption.standsIn[c.name] && !s.leaving
	target, placed := s.plan.Placed[c.name]
	return transfer{c, target}, placed || !s.leaving
}

// beginTransfersLocked starts to hand roles over once due.
func (s *spreadRun) beginTransfersLocked(transfers []transfer, now time.Duration) {
	a := &s.assumption
	switch moveAt := a.changedAt + s.config.MoveDelay; {
	case s.handOverWaiters > 0:
	case s.leaving: // it keeps its roles until handOverAll is called
		return
	case now < moveAt:
		s.applyByLocked(moveAt)
		return
	case a.readAt < a.changedAt: // the plan is applied again after the next read
		return
	}
	s.transferring = true
	version := s.planVersion
	s.group.Go(func() {
		s.transferAll(interleaveTargets(transfers), version)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.transferring, s.dirty = false, true
		s.wakeLoop()
	})
}

// interleaveTargets orders transfers by turns of the targets.
func interleaveTargets(transfers []transfer) []transfer {
	given := map[uuid.UUID]int{}
	turns := make(map[*candidacy]int, len(transfers))
	for _, t := range transfers {
		turns[t.candidacy] = given[t.target]
		given[t.target]++
	}
	slices.SortStableFunc(transfers, func(a, b transfer) int { return cmp.Compare(turns[a.candidacy], turns[b.candidacy]) })
	return transfers
}

// transferAll hands roles over in batches until the plan changes.
func (s *spreadRun) transferAll(transfers []transfer, version int) {
	for batch := range slices.Chunk(transfers, moveBatch) {
		s.mu.Lock()
		stale := s.planVersion != version
		for _, t := range batch {
			t.candidacy.handingOver = !stale
		}
		s.mu.Unlock()
		if stale || s.ctx.Err() != nil {
			return
		}
		s.transferBatch(batch)
	}
}

func (s *spreadRun) transferBatch(batch []transfer) {
	clock := s.member.node.Clock()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer clock.AfterFunc(movePause, cancel)()
	given := make(chan struct{}, len(batch))
	for _, t := range batch {
		s.group.Go(func() {
			err := t.candidacy.handOver(s.ctx, t.target)
			if err != nil && t.candidacy.asksTarget {
				s.keep(t.candidacy, err)
			}
			if err != nil && s.ctx.Err() == nil && !errors.Is(err, tenure.ErrNotActive) {
				s.member.node.Logger().Warn("handing a role over failed", "role", t.candidacy.name, "to", t.target, "error", err)
			}
			given <- struct{}{}
		})
	}
	for range batch {
		select {
		case <-given:
		case <-ctx.Done():
			return
		}
	}
	s.awaitNewLeaders(ctx, batch)
}

// keep makes this member lead a role for longer, because its own node does not take it
// back. Unless its own node has declined, it is asked again soon.
func (s *spreadRun) keep(c *candidacy, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.handingOver = false
	s.offered[c.name] = retryAdoption
	if errors.Is(err, tenure.ErrNotActive) && !errors.Is(err, context.DeadlineExceeded) {
		s.offered[c.name] = longAdoption
	}
	s.dirty = true
	s.wakeLoop()
}

// awaitNewLeaders waits until the roles of a batch have leaders again.
func (s *spreadRun) awaitNewLeaders(ctx context.Context, batch []transfer) {
	node := s.member.node
	names := make([]string, 0, len(batch))
	for _, t := range batch {
		if t.target != uuid.Nil {
			names = append(names, t.candidacy.name)
		}
	}
	for pause := 4 * time.Millisecond; ; pause = min(2*pause, movePause/8) {
		wakeup.AwaitOn(ctx, node.Clock(), pause, nil)
		holders, err := node.Holders(ctx, names)
		if err != nil {
			return // the pause is over, or the session is lost
		}
		if !slices.ContainsFunc(holders, func(h tenure.RoleHolder) bool { return h.Reserved }) {
			return
		}
	}
}

// handOverAll hands over this member's roles when it drains or leaves, and waits until
// they are handed over or ctx ends. It keeps a role if no other node may lead it.
func (s *Spread) handOverAll(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handOverWaiters++
	defer func() { s.handOverWaiters-- }()
	for s.running && !s.handedOverLocked() {
		changed := s.changed
		s.dirty = true
		s.wakeLoop()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// handedOverLocked reports whether there are no roles left to hand over.
func (s *Spread) handedOverLocked() bool {
	leads, others := false, false
	for name, c := range s.candidacies {
		_, placed := s.plan.Placed[name]
		leads = leads || c.election.State() != tenure.Follower && c.election.State() != tenure.Stopped
		others = others || placed
	}
	return !leads || s.leaving && !others
}
