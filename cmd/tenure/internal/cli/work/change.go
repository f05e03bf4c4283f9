package work

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorPauseLong = `Pause a processor and wait until the batch in flight has ended. If that takes longer
than --timeout, the exit code is 1; the processor stays paused.`

const processorResumeLong = `Resume a paused processor.`

const processorRetryLong = `Make a processor whose handler failed retry immediately. A failed processor becomes
active; a paused one stays paused.`

// processorChange is a command to change one processor and then print its status.
type processorChange struct {
	out     *console.Output
	timeout *flagvalue.Duration // nil for the library's default
	change  func(ctx context.Context, processors *processor.Admin, name, by string) error
	done    string // printed about the processor afterwards
}

// command adds the common parts of all changes to a command.
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
	return c.out.Print(record.NewProcessor(status), console.Flatten(name)+" "+c.done)
}

func newProcessorPause(out *console.Output) *cobra.Command {
	c := &processorChange{out: out, timeout: &flagvalue.Duration{Value: time.Minute}, done: "is paused"}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Pause(ctx, name, by)
	}
	cmd := c.command(&cobra.Command{
		Use: "pause PROCESSOR", Short: "Pause a processor and wait for the current batch", Long: processorPauseLong,
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
		Use: "resume PROCESSOR", Short: "Resume a paused processor", Long: processorResumeLong, Example: "  tenure processor resume balances",
	})
}

func newProcessorRetry(out *console.Output) *cobra.Command {
	c := &processorChange{out: out, done: "is retried"}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Retry(ctx, name, by)
	}
	return c.command(&cobra.Command{
		Use: "retry PROCESSOR", Short: "Retry a failed processor immediately", Long: processorRetryLong, Example: "  tenure processor retry balances",
	})
}
