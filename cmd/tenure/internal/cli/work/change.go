package work

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/flagvalue"
	"github.com/exactly-one/tenure/processor"
)

const processorPauseLong = `Keep a processor from taking another batch of events, and wait until the batch in
flight has ended. If that takes longer than --timeout the exit code is 1; the pause
stands all the same.`

const processorResumeLong = `End the pause of a processor.`

const processorRetryLong = `Have a processor try again at once, whose handler failed. One that has failed works
again; a pause stays.`

// processorChange is a command that changes one processor and then prints how that
// is doing.
type processorChange struct {
	out     *console.Output
	timeout *flagvalue.Duration // nil: the library's
	change  func(ctx context.Context, processors *processor.Admin, name, by string) error
	done    string // what is said of the processor then
}

// command adds to a command what all changes have in common.
func (c *processorChange) command(cmd *cobra.Command) *cobra.Command {
	return subject.Change(cmd, func(ctx context.Context, processors *processor.Admin, args []string, by string) error {
		return c.run(ctx, processors, args[0], by)
	})
}

func (c *processorChange) run(ctx context.Context, processors *processor.Admin, name, by string) error {
	bounded := ctx
	if c.timeout != nil {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, c.timeout.Value)
		defer cancel()
	}
	err := c.change(bounded, processors, name, by)
	switch {
	case err != nil && errors.Is(err, context.DeadlineExceeded) && bounded.Err() != nil:
		return console.NotAcquired("%w", err)
	case err != nil:
		return err
	}
	status, err := processors.Show(ctx, name)
	if err != nil {
		return err
	}
	return c.out.Print(newProcessorRecord(status), console.Flatten(name)+" "+c.done)
}

func newProcessorPause(out *console.Output) *cobra.Command {
	c := &processorChange{out: out, timeout: &flagvalue.Duration{Value: time.Minute}, done: "is paused"}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Pause(ctx, name, by)
	}
	cmd := c.command(&cobra.Command{
		Use: "pause PROCESSOR", Short: "Let no batch begin, and wait for the one in flight", Long: processorPauseLong,
		Example: "  tenure processor pause balances",
	})
	cmd.Flags().Var(c.timeout, "timeout", "how long to wait for the batch in flight")
	return cmd
}

func newProcessorResume(out *console.Output) *cobra.Command {
	c := &processorChange{out: out, done: "works"}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Resume(ctx, name, by)
	}
	return c.command(&cobra.Command{
		Use: "resume PROCESSOR", Short: "End a pause", Long: processorResumeLong, Example: "  tenure processor resume balances",
	})
}

func newProcessorRetry(out *console.Output) *cobra.Command {
	c := &processorChange{out: out, done: "tries again"}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Retry(ctx, name, by)
	}
	return c.command(&cobra.Command{
		Use: "retry PROCESSOR", Short: "Try again at once what failed", Long: processorRetryLong, Example: "  tenure processor retry balances",
	})
}
