package cluster

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Roles are handed over in batches. The next one begins when the last has been
// taken, so that roles do not wait, led by nobody, behind others; but it does not
// wait long for work that is slow to return, or for a node that is.
const (
	moveBatch = 32
	movePause = 250 * time.Millisecond
	// moveAhead is for how many of the roles that another gives a member stands
	// at a time, in the order in which they are given.
	moveAhead = 2 * moveBatch
)

// transfer is a role to hand over, to no node in particular if target is uuid.Nil.
type transfer struct {
	candidacy *candidacy
	target    uuid.UUID
}

// apply makes this member campaign for the roles that belong here and hand over
// the others that it leads. It returns when to do so again if nothing changes
// before.
func (s *spreadRun) apply(now time.Duration) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dirty && now < s.again {
		return s.again, nil
	}
	s.again, s.ahead = math.MaxInt64, false
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
	if len(transfers) > 0 && !s.moving {
		s.beginTransfersLocked(transfers, now)
	}
	return s.again, nil
}

// applyByLocked has the plan applied again at a time, or earlier.
func (s *spreadRun) applyByLocked(at time.Duration) { s.again = min(s.again, at) }

// belongsHereLocked reports whether this member shall lead a role: the plan places
// it here, or it is led here for a while because its own node does not take it.
func (s *spreadRun) belongsHereLocked(name string, now time.Duration) bool {
	a := &s.assumption
	if target, placed := s.plan.Placed[name]; placed && target == a.self {
		return true
	}
	until, adopted := a.adopted[name]
	if !adopted || s.leaves {
		return false
	}
	if until <= now {
		delete(a.adopted, name)
		return false
	}
	s.applyByLocked(until)
	return true
}

// aheadLocked counts the roles that each node has yet to hand to this member, and
// reports whether a role is so far behind in that order that it has to wait.
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

// campaignWhenDueLocked starts a campaign for a role that belongs here, unless it
// is too early for that.
func (s *spreadRun) campaignWhenDueLocked(name string, ahead bool, now time.Duration, gate <-chan struct{}) error {
	switch pause := s.cooldowns[name]; {
	case pause.until > now:
		s.applyByLocked(pause.until)
	case ahead:
		s.ahead = true
	case !pause.done:
		return s.startCampaignLocked(name, gate)
	}
	return nil
}

// withdrawLocked stops campaigning for a role that belongs elsewhere. If this member
// leads the role, it returns the transfer to make, if there is one: a member that
// leaves keeps a role that no other node may lead.
func (s *spreadRun) withdrawLocked(c *candidacy) (t transfer, ok bool) {
	if c == nil || c.handingOver {
		return transfer{}, false
	}
	if c.election.State() != tenure.Leading {
		c.stop()
		return transfer{}, false
	}
	target, placed := s.plan.Placed[c.name]
	return transfer{c, target}, placed || !s.leaves
}

// beginTransfersLocked hands roles over when it is time for that.
func (s *spreadRun) beginTransfersLocked(transfers []transfer, now time.Duration) {
	b := &s.assumption
	switch quiet := b.changedAt + s.config.MoveDelay; {
	case s.handingOver > 0:
	case s.leaves: // it keeps its roles until handOverAll is called
		return
	case now < quiet:
		s.applyByLocked(quiet)
		return
	case b.readAt < b.changedAt: // after reading, the plan is applied again
		return
	}
	s.moving = true
	edition := s.edition
	s.group.Go(func() {
		s.transferAll(inTurn(transfers), edition)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moving, s.dirty = false, true
		s.poke()
	})
}

// inTurn orders transfers so that all targets are busy at the same time.
func inTurn(transfers []transfer) []transfer {
	given := map[uuid.UUID]int{}
	turns := make(map[*candidacy]int, len(transfers))
	for _, t := range transfers {
		turns[t.candidacy] = given[t.target]
		given[t.target]++
	}
	slices.SortStableFunc(transfers, func(a, b transfer) int { return cmp.Compare(turns[a.candidacy], turns[b.candidacy]) })
	return transfers
}

// transferAll hands roles over, batch by batch, as long as the plan is the same.
func (s *spreadRun) transferAll(transfers []transfer, edition int) {
	for batch := range slices.Chunk(transfers, moveBatch) {
		s.mu.Lock()
		stale := s.edition != edition
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
			if err != nil && s.ctx.Err() == nil {
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
	s.awaitTaken(ctx, batch)
}

// awaitTaken waits until the roles of a batch are led again.
func (s *spreadRun) awaitTaken(ctx context.Context, batch []transfer) {
	node := s.member.node
	names := make([]string, 0, len(batch))
	for _, t := range batch {
		if t.target != uuid.Nil {
			names = append(names, t.candidacy.name)
		}
	}
	for pause := 4 * time.Millisecond; ; pause *= 2 {
		wait(ctx, node.Clock(), pause, nil)
		holders, err := node.Holders(ctx, names)
		if err != nil {
			return // the pause is over, or the session lost
		}
		if !slices.ContainsFunc(holders, func(h tenure.RoleHolder) bool { return h.Reserved }) {
			return
		}
	}
}

// handOverAll hands over what this member leads, when it drains or leaves, and
// waits until that is done or the context ends. It keeps roles that no other node
// may lead.
func (s *Spread) handOverAll(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handingOver++
	defer func() { s.handingOver-- }()
	for s.running && !s.handedOverLocked() {
		changed := s.changed
		s.dirty = true
		s.poke()
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

// handedOverLocked reports whether there is nothing to hand over.
func (s *Spread) handedOverLocked() bool {
	leads, others := false, false
	for name, c := range s.candidacies {
		_, placed := s.plan.Placed[name]
		leads = leads || c.election.State() != tenure.Follower && c.election.State() != tenure.Stopped
		others = others || placed
	}
	return !leads || s.leaves && !others
}
