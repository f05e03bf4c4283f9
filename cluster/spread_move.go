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

// gift is a role to hand over, to nobody if no node may lead it.
type gift struct {
	seat   *seat
	target uuid.UUID
}

// apply makes this member stand for what belongs here and give away what does
// not. It returns when to do so again if nothing changes before.
func (s *steering) apply(now time.Duration) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dirty && now < s.again {
		return s.again, nil
	}
	b := &s.belief
	s.again = math.MaxInt64
	later := func(at time.Duration) { s.again = min(s.again, at) }
	var gifts []gift
	gate, awaited := make(chan struct{}), map[uuid.UUID]int{}
	defer close(gate)
	s.ahead = false
	for _, name := range s.names {
		target, placed := s.plan.Placed[name]
		here := placed && target == b.self
		if until, adopted := b.adopted[name]; adopted && !here && !s.leaves {
			if here = until > now; here {
				later(until)
			} else {
				delete(b.adopted, name)
			}
		}
		seat, rest := s.seats[name], s.rests[name]
		tooEarly := false
		if here && (seat == nil || seat.election.State() != tenure.Leading) {
			if giver := b.giver(name); giver != uuid.Nil {
				awaited[giver]++
				tooEarly = awaited[giver] > moveAhead
			}
		}
		switch {
		case here && seat == nil && rest.until > now:
			later(rest.until)
		case here && seat == nil && tooEarly:
			s.ahead = true
		case here && seat == nil && !rest.done:
			if err := s.stand(name, gate); err != nil {
				return 0, err
			}
		case here || seat == nil || seat.giving:
		case seat.election.State() != tenure.Leading:
			seat.stop()
		case placed:
			gifts = append(gifts, gift{seat, target})
		case !s.leaves: // nobody may lead it, this member neither
			gifts = append(gifts, gift{seat, uuid.Nil})
		}
	}
	s.dirty = false
	if len(gifts) > 0 && !s.moving {
		s.begin(gifts, now)
	}
	return s.again, nil
}

// begin hands roles over when it is time for that. Under the mutex.
func (s *steering) begin(gifts []gift, now time.Duration) {
	b := &s.belief
	switch quiet := b.changedAt + s.config.MoveDelay; {
	case s.evacuating > 0:
	case s.leaves: // its roles are kept until somebody evacuates it
		return
	case now < quiet:
		s.again = min(s.again, quiet)
		return
	case b.readAt < b.changedAt: // after reading, the plan is applied again
		return
	}
	s.moving = true
	edition := s.edition
	s.group.Go(func() {
		s.give(inTurn(gifts), edition)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moving, s.dirty = false, true
		s.poke()
	})
}

// inTurn orders gifts such that all targets are busy at the same time.
func inTurn(gifts []gift) []gift {
	given := map[uuid.UUID]int{}
	turns := make(map[*seat]int, len(gifts))
	for _, g := range gifts {
		turns[g.seat] = given[g.target]
		given[g.target]++
	}
	slices.SortStableFunc(gifts, func(a, b gift) int { return cmp.Compare(turns[a.seat], turns[b.seat]) })
	return gifts
}

// give hands roles over, batch by batch, as long as the plan is the same.
func (s *steering) give(gifts []gift, edition int) {
	for batch := range slices.Chunk(gifts, moveBatch) {
		s.mu.Lock()
		stale := s.edition != edition
		for _, g := range batch {
			g.seat.giving = !stale
		}
		s.mu.Unlock()
		if stale || s.standing.Err() != nil {
			return
		}
		s.giveBatch(batch)
	}
}

func (s *steering) giveBatch(batch []gift) {
	clock := s.member.node.Clock()
	ctx, cancel := context.WithCancel(s.standing)
	defer cancel()
	defer clock.AfterFunc(movePause, cancel)()
	given := make(chan struct{}, len(batch))
	for _, g := range batch {
		s.group.Go(func() {
			err := g.seat.handOver(s.standing, g.target)
			if err != nil && s.standing.Err() == nil {
				s.member.node.Logger().Warn("handing a role over failed", "role", g.seat.name, "to", g.target, "error", err)
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
func (s *steering) awaitTaken(ctx context.Context, batch []gift) {
	node := s.member.node
	names := make([]string, 0, len(batch))
	for _, g := range batch {
		if g.target != uuid.Nil {
			names = append(names, g.seat.name)
		}
	}
	for pause := 4 * time.Millisecond; ; pause *= 2 {
		wait(ctx, node.Clock(), pause, nil)
		holders, err := node.Holders(ctx, names)
		if err != nil {
			return // the pause is over, or the session lost
		}
		if !slices.ContainsFunc(holders, func(h tenure.Holder) bool { return h.Reserved }) {
			return
		}
	}
}

// evacuate hands over what this member leads, when it drains or leaves, and
// waits until that is done or the context ends. Roles that nobody else may lead
// are left.
func (s *Spread) evacuate(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evacuating++
	defer func() { s.evacuating-- }()
	for s.running && !s.evacuated() {
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

// evacuated reports whether there is nothing to hand over. Under the mutex.
func (s *Spread) evacuated() bool {
	leads, others := false, false
	for name, seat := range s.seats {
		_, placed := s.plan.Placed[name]
		leads = leads || seat.election.State() != tenure.Follower && seat.election.State() != tenure.Stopped
		others = others || placed
	}
	return !leads || s.leaves && !others
}
