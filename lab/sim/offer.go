package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// An offer asks the target of a hand-over whether it campaigns for the role, as package
// postgres does: the requester records it, the target's session takes it with its
// requests and records the answer, and the requester polls for that.

const (
	offerTimeout               = 4 * time.Second
	minOfferPoll, maxOfferPoll = time.Millisecond, 20 * time.Millisecond
)

// offer is a role that is offered to a node.
type offer struct {
	id       int64
	role     string
	target   uuid.UUID
	taken    bool
	answered bool
	accepted bool
}

// offer asks the target of a hand-over whether it campaigns for the role, and returns an
// error if it does not or sends no answer in time.
func (d *database) offer(ctx context.Context, request tenure.Request) error {
	limited, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	var id int64
	err := d.ask(limited, func(s *server) (err error) {
		id, err = s.offer(request)
		return err
	})
	if err != nil {
		return err
	}
	accepted, err := d.awaitAnswer(limited, id)
	switch {
	case err == nil && accepted:
		return nil
	case err == nil:
		return fmt.Errorf("%w: the target does not campaign for %q", tenure.ErrNotActive, request.Role)
	case limited.Err() == nil:
		return err
	}
	d.withdraw(ctx, id)
	if ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: the target did not answer whether it campaigns for %q", tenure.ErrNotActive, request.Role)
}

// awaitAnswer polls for the answer to an offer.
func (d *database) awaitAnswer(ctx context.Context, id int64) (accepted bool, err error) {
	for pause := minOfferPoll; ; pause = min(2*pause, maxOfferPoll) {
		select {
		case <-time.After(pause):
		case <-d.process.died:
			return false, errKilled
		case <-ctx.Done():
			return false, fmt.Errorf("%w: %w", tenure.ErrConnection, context.Cause(ctx))
		}
		found, err := askFor(ctx, d, func(s *server) offer { return s.takeAnswer(id) })
		if ctx.Err() == nil && (err != nil || found.answered) {
			return found.accepted, err
		}
	}
}

// withdraw removes an offer without an answer. If that fails, the offer stays, but no
// requester waits for its answer.
func (d *database) withdraw(ctx context.Context, id int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.ask(ctx, func(s *server) error {
		s.withdraw(id)
		return nil
	})
}

// offer records an offer and wakes its target.
func (s *server) offer(r tenure.Request) (int64, error) {
	if err := s.checkTarget(r.Target); err != nil {
		return 0, err
	}
	if !s.isLed(r.Role) {
		return 0, tenure.ErrNoLeader
	}
	s.flush()
	s.offerIDs++
	s.offers = append(s.offers, &offer{id: s.offerIDs, role: r.Role, target: r.Target})
	s.notify()
	return s.offerIDs, nil
}

// withdraw removes an offer.
func (s *server) withdraw(id int64) {
	s.offers = slices.DeleteFunc(s.offers, func(o *offer) bool { return o.id == id })
}

// dropOffersTo removes the offers that a node has not taken yet.
func (s *server) dropOffersTo(node uuid.UUID) {
	s.offers = slices.DeleteFunc(s.offers, func(o *offer) bool { return o.target == node && !o.taken })
}

// takeAnswer removes and returns an offer that was answered.
func (s *server) takeAnswer(id int64) offer {
	for _, o := range s.offers {
		if o.id == id && o.answered {
			s.withdraw(id)
			return *o
		}
	}
	return offer{}
}

// isOffered reports whether there are offers that the node of b has not taken.
func (b *backend) isOffered() bool {
	return slices.ContainsFunc(b.server.offers, func(o *offer) bool { return o.target == b.node.ID && !o.taken })
}

// takeOffers returns the offers to the node of b that it has not taken yet.
func (b *backend) takeOffers() (taken []offer) {
	for _, o := range b.server.offers {
		if o.target == b.node.ID && !o.taken {
			o.taken = true
			taken = append(taken, *o)
		}
	}
	return taken
}

// answer asks the node about offers and records what it says. If that fails, the
// requesters get no answer and the leaders keep the roles.
func (s *session) answer(offered []offer) error {
	if len(offered) == 0 {
		return nil
	}
	accepted := make(map[int64]bool, len(offered))
	for _, o := range offered {
		accepted[o.id] = s.opening.Campaigns == nil || s.opening.Campaigns(o.role)
	}
	err := s.call("answer", func(b *backend) error {
		for _, o := range b.server.offers {
			if yes, asked := accepted[o.id]; asked {
				o.answered, o.accepted = true, yes
			}
		}
		return nil
	})
	if errors.Is(err, tenure.ErrSessionLost) {
		return err
	}
	return nil
}
