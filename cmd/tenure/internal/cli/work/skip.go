package work

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorSkipLong = `Skip the failing event and move it to the dead letters, from where it can be replayed. A
failed processor becomes active. The command is refused with exit code 2 if no event
fails, or if it is not known yet which event of a batch fails. With --at it skips only
that event, and does nothing if that event was already skipped. The command asks for
confirmation; without a terminal, use --yes.`

const processorRepairLong = `Repair the log of a processor, and the cursors of all processors on it, after a
restore into another database cluster: the transaction ids of the old one are
meaningless there, and processors refuse to use them. The events get ids of this
cluster, in the same order. Events that were handled stay handled, and all others
wait.

Stop all writers first. The database user must own the table of the log, which is
rewritten. The command asks for confirmation; without a terminal, use --yes.`

func newProcessorSkip(out *console.Output) *cobra.Command {
	var at eventFlag
	cmd := &cobra.Command{
		Use: "skip PROCESSOR [--at PLACE]", Short: "Skip the failing event", Long: processorSkipLong,
		Example: "  tenure processor skip mails --at 742:1031\n  tenure processor skip mails --yes",
	}
	cmd.Flags().Var(&at, "at", "the event to skip, as tenure processor show prints it: TRANSACTION:POSITION; default the event that fails now")
	return processorOnce(out, cmd, "Skip the event that %s fails at?", func(ctx context.Context, processors *processor.Admin, name, by string) error {
		place, err := skip(ctx, processors, name, at.place, by)
		if err != nil {
			return err
		}
		return out.Print(record.SkippedEvent{Processor: name, Skipped: place.String()}, fmt.Sprintf("%s skips the event at %s", console.Flatten(name), place))
	})
}

// skip passes the event in any case: the error of a lost response can name the event to
// skip again.
func skip(ctx context.Context, processors *processor.Admin, name string, at processor.Cursor, by string) (processor.Cursor, error) {
	if at == (processor.Cursor{}) {
		status, err := processors.Show(ctx, name)
		if err != nil {
			return at, err
		}
		at = status.Failing
	}
	place, err := processors.Skip(ctx, name, at, by)
	if errors.Is(err, tenure.ErrInvalidConfig) || err == nil || at == (processor.Cursor{}) {
		return place, err
	}
	return place, fmt.Errorf("%w: the event may have been skipped: repeat the command with --at %s", err, at)
}

func newProcessorRepair(out *console.Output) *cobra.Command {
	return processorOnce(out, &cobra.Command{
		Use: "repair PROCESSOR", Short: "Repair a log that was restored from another database cluster", Long: processorRepairLong,
		Example: "  tenure processor repair balances --yes",
	}, "Renumber the log of %s, with all writers stopped?", func(ctx context.Context, processors *processor.Admin, name, by string) error {
		repaired, err := processors.Repair(ctx, name, by)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("nothing was wrong with %s", repaired.Table)
		if len(repaired.Processors) > 0 {
			text = fmt.Sprintf("%s is repaired: %d events renumbered, and the cursors of %s", repaired.Table, repaired.Events, strings.Join(repaired.Processors, ", "))
		}
		return out.Print(record.NewRepairedLog(repaired), console.Flatten(text))
	})
}

// processorOnce completes a command with an irreversible effect on one processor. The
// question contains a verb for the processor's name.
func processorOnce(out *console.Output, cmd *cobra.Command, question string, do func(ctx context.Context, processors *processor.Admin, name, by string) error) *cobra.Command {
	subject.Change(cmd, func(ctx context.Context, processors *processor.Admin, args []string, by string) error {
		return do(ctx, processors, args[0], by)
	})
	consent := &console.ConsentFlag{Out: out}
	consent.Guard(cmd, func(args []string) string { return fmt.Sprintf(question, console.Flatten(args[0])) })
	return cmd
}
