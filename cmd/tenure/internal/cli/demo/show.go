package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
)

// failover is the replacement of one killed leader.
type failover struct {
	from, to string
	term     int64
	took     time.Duration // from just before the kill to the start of the new term
}

// demoView displays the events.
type demoView interface {
	// elected shows a new leader, and the failover that made it leader unless replaced is
	// nil.
	elected(at time.Time, slot *demoSlot, term int64, replaced *failover) error
	// killed shows the kill of the leader.
	killed(at time.Time, slot *demoSlot, term int64) error
	// draw redraws the current state, if the view is a picture.
	draw(show *demoShow) error
}

// demoSlot is one of the nodes, across its processes.
type demoSlot struct {
	number int
	name   string
	child  *child // nil between two processes
	dying  bool   // killed and not replaced yet
	state  string
	since  time.Time
}

func (d *demoSlot) become(state string, at time.Time) { d.state, d.since = state, at }

// demoShow is the course of the demonstration: a node leads for a while, is
// killed, and another node takes over.
type demoShow struct {
	children *children
	view     demoView
	every    time.Duration
	most     int // failovers after which the show ends; 0 if it does not

	slots     []*demoSlot
	leader    *demoSlot // nil if there is no leader
	term      int64     // of the last leader
	victim    *demoSlot // the killed leader without a successor yet
	killedAt  time.Time
	next      time.Time   // when the leader will be killed
	alarm     *time.Timer // fires then, or when waiting for a leader has taken too long
	failovers []failover
}

// run continues until ctx ends, or until there were as many failovers as wanted.
func (s *demoShow) run(ctx context.Context) error {
	for number := range Nodes {
		slot := &demoSlot{number: number, name: slotName(number)}
		s.slots = append(s.slots, slot)
		if err := s.start(slot); err != nil {
			return err
		}
	}
	s.alarm = time.NewTimer(takeoverLimit)
	defer s.alarm.Stop()
	frames := time.NewTicker(100 * time.Millisecond)
	defer frames.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case update := <-s.children.updates:
			err = s.take(update)
		case <-s.alarm.C:
			err = s.strike()
		case <-frames.C:
		}
		if err != nil {
			return err
		}
		if err := s.view.draw(s); err != nil {
			return err
		}
		if s.most > 0 && len(s.failovers) >= s.most {
			return nil
		}
	}
}

func (s *demoShow) start(slot *demoSlot) error {
	started, err := s.children.start(slot.number)
	if err != nil {
		return err
	}
	slot.child, slot.dying = started, false
	slot.become("starting", time.Now())
	return nil
}

// take handles an event of a child.
func (s *demoShow) take(update childUpdate) error {
	slot := s.slots[update.child.slot]
	switch {
	case update.ended:
		s.children.forget(update.child)
		if !slot.dying {
			return fmt.Errorf("%s ended unexpectedly: %s", slot.name, update.child.log.String())
		}
		slot.child = nil
		return s.replace()
	case slot.dying: // its last events
		return nil
	case update.event.Event == tenure.EventAcquired:
		return s.elect(slot, update.event)
	case update.event.Event == tenure.EventStateChange && update.event.To != tenure.Leading.String():
		if slot == s.leader { // it lost the role without a kill
			s.leader = nil
			s.alarm.Reset(takeoverLimit)
		}
		if slot.state != "standby" {
			slot.become("standby", update.event.Time)
		}
	}
	return nil
}

// elect handles a new leader.
func (s *demoShow) elect(slot *demoSlot, event childEvent) error {
	slot.become("LEADER", event.Time)
	s.leader, s.term = slot, event.Term
	s.next = time.Now().Add(s.every)
	s.alarm.Reset(s.every)
	var replaced *failover
	if s.victim != nil {
		replaced = &failover{from: s.victim.name, to: slot.name, term: event.Term, took: event.Time.Sub(s.killedAt)}
		s.failovers = append(s.failovers, *replaced)
		s.victim = nil
	}
	if err := s.view.elected(event.Time, slot, event.Term, replaced); err != nil {
		return err
	}
	return s.replace()
}

// replace starts a new process for a killed node when the old one has ended and another
// node leads: it must not take part in its own failover.
func (s *demoShow) replace() error {
	if s.leader == nil {
		return nil
	}
	for _, slot := range s.slots {
		if slot.dying && slot.child == nil {
			return s.start(slot)
		}
	}
	return nil
}

// strike kills the leader. If there is still none, it returns an error.
func (s *demoShow) strike() error {
	victim := s.leader
	if victim == nil {
		return fmt.Errorf("there was no leader for %v", takeoverLimit)
	}
	at, err := s.children.kill(victim.child)
	if err != nil {
		return fmt.Errorf("kill %s: %w", victim.name, err)
	}
	s.leader, s.victim, s.killedAt = nil, victim, at
	victim.dying = true
	victim.become("killed", at)
	s.alarm.Reset(takeoverLimit)
	return s.view.killed(at, victim, s.term)
}
