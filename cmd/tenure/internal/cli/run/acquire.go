package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/retry"
)

const acquireLong = `Try once to acquire a role, and release it again.

Exits 0 if the role was acquired and 1 if another node or program holds it. With
--hold the role is held until SIGTERM or SIGINT, or until the node is asked to step
down (both exit 0), or until it is lost (exit 3).`

// acquireCommand makes one attempt to acquire a role.
type acquireCommand struct {
	out   *console.Output
	node  service.NodeFlags
	roles flagvalue.RoleFlags
	hold  bool
}

// NewAcquire returns the command "tenure acquire".
func NewAcquire(out *console.Output) *cobra.Command {
	c := &acquireCommand{out: out}
	cmd := &cobra.Command{
		Use:   "acquire --role NAME",
		Short: "Try once to acquire a role; exit 0 if it was acquired, 1 if not",
		Long:  acquireLong,
		Args:  console.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.roles.RegisterSingle(cmd.Flags(), "acquire")
	c.node.Register(cmd.Flags(), "error")
	cmd.Flags().BoolVar(&c.hold, "hold", false, "hold the role until a signal")
	return cmd
}

func (c *acquireCommand) run(cmd *cobra.Command) error {
	role, err := c.roles.Single()
	if err != nil {
		return err
	}
	config, err := c.node.Config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	config.Retry = retry.Func(func(retry.Failure) (time.Duration, bool) { return 0, false })
	return c.node.RunAlone(cmd.Context(), config, func(ctx context.Context, p *service.Participant) error {
		node := p.Node
		election, err := node.ElectionWith(role, tenure.ElectionConfig{
			NoReacquire: true, Retry: retry.FixedInterval{},
		})
		if err != nil {
			return err
		}
		lost := make(chan struct{})
		printed := sync.OnceFunc(func() { close(lost) })
		election.OnEvent(func(event tenure.Event) {
			if event.Kind == tenure.EventLost {
				defer printed()
			}
			switch event.Kind {
			case tenure.EventAcquired, tenure.EventReleased, tenure.EventLost, tenure.EventAcquireFailed:
				record := service.NewEventRecord(node, event)
				if err := c.out.Print(record, record.Text()); err != nil {
					config.Logger.Error("an event could not be printed", "error", err)
				}
			}
		})
		return c.attempt(ctx, election, lost)
	})
}

// attempt acquires a role once and, with --hold, holds it until its term ends. lost
// is closed when the loss of the term has been printed.
func (c *acquireCommand) attempt(ctx context.Context, election *tenure.Election, lost <-chan struct{}) error {
	term, err := election.TryAcquire(ctx)
	switch {
	case errors.Is(err, tenure.ErrHeld):
		return console.NotAcquired("%s is held by %s", election.Role(), holder(ctx, election))
	case err != nil && ctx.Err() != nil:
		return console.NotAcquired("interrupted before %s was acquired", election.Role())
	case err != nil || !c.hold:
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-term.Context().Done():
	}
	if cause := context.Cause(term.Context()); !errors.Is(cause, tenure.ErrResigned) {
		// The context ends before the event. A node closing in between reports a stop.
		select {
		case <-lost:
		case <-time.After(lossTimeout):
		}
		return lostRole(election.Role(), cause)
	}
	return nil
}

// lossTimeout bounds the wait for the event of a loss: standard output may block.
const lossTimeout = 5 * time.Second

// holder names the leader of an unavailable role.
func holder(ctx context.Context, election *tenure.Election) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	leader, err := election.Leader(ctx)
	if err != nil {
		return "another program"
	}
	return fmt.Sprintf("%s (term %d)", leader.NodeName, leader.Term)
}
