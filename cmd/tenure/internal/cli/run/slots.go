package run

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/slots"
)

// elections returns the election for the role, or the elections for its slots, and a
// function to campaign and to run the command in every term.
func (l *commandRunner) elections(node *tenure.Node, config tenure.ElectionConfig) ([]*tenure.Election, func(context.Context) error, error) {
	if l.plan.Slots.Count == 0 {
		election, err := node.ElectionWith(l.role, config)
		return []*tenure.Election{election}, func(ctx context.Context) error { return election.Run(ctx, l.lead) }, err
	}
	set, err := slots.New(node, l.role.Name(), slots.Config{
		Count: l.plan.Slots.Count, PerNode: l.plan.Slots.PerNode, Election: config,
	})
	if err != nil {
		return nil, nil, err
	}
	return set.Elections(), func(ctx context.Context) error { return l.runSlots(ctx, set) }, nil
}

// runSlots runs a command for each slot led by this node.
func (l *commandRunner) runSlots(ctx context.Context, set *slots.Set) error {
	runners := make([]*commandRunner, l.plan.Slots.Count)
	copies := make([]chan os.Signal, len(runners))
	for i := range runners {
		runner := *l
		copies[i] = make(chan os.Signal, cap(l.signals))
		runner.signals = copies[i]
		runner.environment = slices.Concat(l.environment, []string{settings.SlotVariable + "=" + strconv.Itoa(i+1)})
		runners[i] = &runner
	}
	ctx, cancel := context.WithCancel(ctx)
	var forwarding sync.WaitGroup
	forwarding.Go(func() { forward(ctx, l.signals, copies) }) // exits when ctx ends; runSlots waits
	defer forwarding.Wait()
	defer cancel()
	return set.Run(ctx, func(ctx context.Context, slot int, term *tenure.Term) error { return runners[slot-1].lead(ctx, term) })
}

// forward passes every signal to the commands of all slots until ctx ends. Like the
// system, it drops signals for a command that does not take them.
func forward(ctx context.Context, signals <-chan os.Signal, copies []chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case received := <-signals:
			for _, to := range copies {
				select {
				case to <- received:
				default:
				}
			}
		}
	}
}

// observed is the history of the elections by their events.
type observed struct {
	runner *commandRunner
	cancel context.CancelCauseFunc
	of     int // how many elections there are

	mu   sync.Mutex
	led  bool                      // this node has led
	held map[*tenure.Election]bool // found another leader
}

// follow logs and publishes the events of an election, and ends the campaign when it is
// pointless.
func (o *observed) follow(election *tenure.Election) {
	l, node := o.runner, election.Node()
	var failure error // of the last attempt; callbacks are called one at a time
	election.OnEvent(func(event tenure.Event) {
		lead.LogEvent(l.log, event)
		l.server.Publish(service.NewEventRecord(node, event))
		switch event.Kind {
		case tenure.EventAcquired:
			failure = nil
			o.acquired()
		case tenure.EventAcquireFailed:
			if errors.Is(event.Err, tenure.ErrNotActive) {
				return // the node waits for the minimum of nodes, or drains
			}
			failure = event.Err
			switch {
			case errors.Is(failure, tenure.ErrKeyMismatch): // retrying does not help
				o.cancel(failure)
			case errors.Is(failure, tenure.ErrHeld) && o.allHeld(election) && l.plan.NoLeaderExit != nil:
				o.cancel(console.ExitWith(*l.plan.NoLeaderExit, nil))
			}
		case tenure.EventStopped:
			if l.ctx.Err() == nil && failure != nil && !errors.Is(failure, tenure.ErrHeld) {
				o.cancel(failure)
			}
		}
	})
}

func (o *observed) acquired() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.led = true
}

// allHeld records that another node holds the role of the election. It returns whether
// this node has never led and other nodes hold all roles.
func (o *observed) allHeld(election *tenure.Election) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held = map[*tenure.Election]bool{}
	}
	o.held[election] = true
	return !o.led && len(o.held) == o.of
}
