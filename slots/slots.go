package slots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// MaxCount is the maximum of [Config].Count.
const MaxCount = 100

// Config configures the slots of a role.
type Config struct {
	// Count is the number of slots: how many leaders there are at most. From 1 to
	// MaxCount.
	Count int
	// PerNode is how many slots one node may have at a time. At most Count.
	// Default: 1.
	PerNode int
	// Election configures the election for each slot. Group and GroupLimit must not
	// be set.
	Election tenure.ElectionConfig
}

// Work is what the leader of a slot does; see [tenure.Work]. Slots are numbered from 1.
type Work func(ctx context.Context, slot int, term *tenure.Term) error

// Set is a node's candidacy for the slots of one role.
type Set struct {
	elections []*tenure.Election
	gaveUp    atomic.Bool // the retry strategy of one slot gave up during this Run
}

// RoleName returns the name of the role of a slot, such as "worker/1".
func RoleName(name string, slot int) string { return name + "/" + strconv.Itoa(slot) }

// New returns the node's candidacy for the slots of the role with this name. It does
// not campaign yet. Errors match [tenure.ErrInvalidConfig], [tenure.ErrInvalidRole], or
// [tenure.ErrDuplicateRole] if the node already has an election for a slot.
func New(node *tenure.Node, name string, cfg Config) (*Set, error) {
	cfg.PerNode = cmp.Or(cfg.PerNode, 1)
	if err := cfg.validate(name); err != nil {
		return nil, err
	}
	election := cfg.Election
	election.Group, election.GroupLimit = name, cfg.PerNode
	s := &Set{elections: make([]*tenure.Election, cfg.Count)}
	if strategy := election.WorkRetry; strategy != nil {
		election.WorkRetry = retry.Func(func(failure retry.Failure) (time.Duration, bool) {
			delay, again := strategy.NextDelay(failure)
			if !again {
				s.gaveUp.Store(true) // before the room of this slot is free
			}
			return delay, again
		})
	}
	for i := range s.elections {
		e, err := node.ElectionWith(tenure.NamedRole(RoleName(name, i+1)), election)
		if err != nil {
			return nil, err
		}
		s.elections[i] = e
	}
	return s, nil
}

func (c Config) validate(name string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case name == "":
		return tenure.NamedRole(name).Validate()
	case c.Count < 1 || c.Count > MaxCount:
		return bad("the number of slots is %d; it must be between 1 and %d", c.Count, MaxCount)
	case c.PerNode < 1 || c.PerNode > c.Count:
		return bad("the number of slots per node is %d; it must be between 1 and the number of slots, %d", c.PerNode, c.Count)
	case c.Election.Group != "" || c.Election.GroupLimit != 0:
		return bad("Group and GroupLimit must not be set: the slots are a group")
	}
	return tenure.NamedRole(RoleName(name, c.Count)).Validate() // the longest name
}

// Elections returns the elections for the slots, in the order of their numbers, for
// example to observe their events. Run starts and stops them.
func (s *Set) Elections() []*tenure.Election { return append([]*tenure.Election(nil), s.elections...) }

// Run campaigns for the slots and calls work for each term, in a goroutine for each
// slot. At most PerNode calls run at a time. Each call is governed by the rules of
// [tenure.Election.Run]. After work returned during its term, the node stays behind:
// with one slot per node it campaigns for no slot during the delay of WorkRetry.
//
// Run returns when the node has given up all slots and all work has returned: when ctx
// ends (nil), after work returned [tenure.Done] for one slot (nil), or when the
// election for one slot has stopped, with its error. No work begins after that.
func (s *Set) Run(ctx context.Context, work Work) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.gaveUp.Store(false)
	errs := make([]error, len(s.elections))
	var running sync.WaitGroup
	for i, e := range s.elections {
		running.Go(func() { // exits when the election has stopped; Run waits
			defer cancel()
			err := e.Run(ctx, func(termCtx context.Context, term *tenure.Term) error {
				if s.gaveUp.Load() {
					<-termCtx.Done() // Run ends when the election for the other slot has stopped, with its error
					if ctx.Err() == nil {
						return nil // the term ended first
					}
				}
				if ctx.Err() != nil {
					return tenure.Done // a slot was acquired while another one ended Run
				}
				err := work(termCtx, i+1, term)
				if errors.Is(err, tenure.Done) {
					cancel() // before the room of this slot is free
				}
				return err
			})
			if ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) { // else Run ended before this election began
				errs[i] = err
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
