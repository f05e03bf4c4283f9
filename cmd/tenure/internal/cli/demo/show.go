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
	took     time.Duration // from just before the kill until the new term had begun
}

// demoView shows what happens.
type demoView interface {
	// elected tells of a new leader, and of the failover that made it leader
	// unless replaced is nil.
	elected(at time.Time, slot *demoSlot, term int64, replaced *failover) error
	// killed tells that the leader was killed.
	killed(at time.Time, slot *demoSlot, term int64) error
	// draw shows the present moment, where the view is a picture of it.
	draw(show *demoShow) error
}

// demoSlot is one of the nodes, through all the processes that it is in turn.
type demoSlot struct {
	number int
	name   string
	child  *child // nil between two processes
	dying  bool   // it was killed, and is not replaced yet
	state  string
	since  time.Time
}

func (d *demoSlot) become(state string, at time.Time) { d.state, d.since = state, at }

// demoShow is the course of the demonstration: a node leads, lives for a while,
// is killed, and another leads.
type demoShow struct {
	children *children
	view     demoView
	every    time.Duration

	slots     []*demoSlot
	leader    *demoSlot // nil if nobody leads
	term      int64     // of the last leader
	victim    *demoSlot // the killed leader that nobody has followed yet
	killedAt  time.Time
	next      time.Time   // when the leader will be killed
	alarm     *time.Timer // then; or when waiting for a leader has lasted too long
	failovers []failover
}

// run goes on until the context ends.
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
		case news := <-s.children.news:
			err = s.take(news)
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

// take takes in what a child said.
func (s *demoShow) take(news childNews) error {
	slot := s.slots[news.child.slot]
	switch {
	case news.ended:
		s.children.forget(news.child)
		if !slot.dying {
			return fmt.Errorf("%s ended by itself: %s", slot.name, news.child.log.String())
		}
		slot.child = nil
		return s.replace()
	case slot.dying: // its last words
		return nil
	case news.event.Event == tenure.EventAcquired:
		return s.elect(slot, news.event)
	case news.event.Event == tenure.EventStateChange && news.event.To != tenure.Leading.String():
		if slot == s.leader { // it lost the role without our doing
			s.leader = nil
			s.alarm.Reset(takeoverLimit)
		}
		if slot.state != "standby" {
			slot.become("standby", news.event.Time)
		}
	}
	return nil
}

// elect takes in that a node leads.
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

// replace starts a new process for a killed node when the old one has ended and
// somebody else leads, so that it does not take part in its own failover.
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

// strike kills the leader; if there still is none, the show is over.
func (s *demoShow) strike() error {
	victim := s.leader
	if victim == nil {
		return fmt.Errorf("nobody led for %v", takeoverLimit)
	}
	at, err := s.children.kill(victim.child)
	if err != nil {
		return fmt.Errorf("killing %s: %w", victim.name, err)
	}
	s.leader, s.victim, s.killedAt = nil, victim, at
	victim.dying = true
	victim.become("killed", at)
	s.alarm.Reset(takeoverLimit)
	return s.view.killed(at, victim, s.term)
}
