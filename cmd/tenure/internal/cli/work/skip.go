package work

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/processor"
)

const processorSkipLong = `Pass over the one event that fails now, and put it among the dead letters, from where
it can be replayed. A processor that has failed works again. It is refused, exit code
2, if nothing fails, or if it is not known yet which event of a batch does. With --at it
skips that event and no other; if it was skipped already, nothing happens. A terminal
is asked; without one, give --yes.`

const processorRepairLong = `Repair the log of a processor, and the cursors of all processors on it, after a restore
into another database cluster: transaction ids of the old one mean nothing there, and
the processors refuse to work with them. The events get ids of this cluster that keep
their order; exactly the events that were not handled remain.

Stop all writers before. The database's user must own the table of the log, which is
rewritten. A terminal is asked; without one, give --yes.`

// SkippedRecord is an event that was passed over.
type SkippedRecord struct {
	Processor string `json:"processor"`
	Skipped   string `json:"skipped"` // its place in the log
}

func newProcessorSkip(out *console.Output) *cobra.Command {
	var at eventFlag
	cmd := &cobra.Command{
		Use: "skip PROCESSOR [--at PLACE]", Short: "Pass over the event that fails", Long: processorSkipLong,
		Example: "  tenure processor skip mails --at 742:1031\n  tenure processor skip mails --yes",
	}
	cmd.Flags().Var(&at, "at", "the event to skip, as tenure processor show prints it: TRANSACTION:POSITION; default whichever fails now")
	return processorOnce(out, cmd, "Pass over the event that %s fails at?", func(ctx context.Context, processors *processor.Admin, name, by string) error {
		place, err := skip(ctx, processors, name, at.place, by)
		if err != nil {
			return err
		}
		return out.Print(SkippedRecord{name, place.String()}, fmt.Sprintf("%s passes over the event at %s", console.Flatten(name), place))
	})
}

// skip names the event in any case, so that the error of a lost answer can say
// which one to skip again.
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
	return place, fmt.Errorf("%w: the event may have been skipped all the same: repeat it with --at %s", err, at)
}

// RepairedRecord is what a repair has done.
type RepairedRecord struct {
	Table      string   `json:"table"`
	Events     int64    `json:"events"`     // that have other transaction ids now
	Processors []string `json:"processors"` // that have other cursors now; empty if nothing was wrong
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
		return out.Print(RepairedRecord{repaired.Table, repaired.Events, append([]string{}, repaired.Processors...)}, console.Flatten(text))
	})
}

// processorOnce completes a command that does something to one processor which
// cannot be undone. The question has a place for the processor's name.
func processorOnce(out *console.Output, cmd *cobra.Command, question string, do func(ctx context.Context, processors *processor.Admin, name, by string) error) *cobra.Command {
	subject.Change(cmd, func(ctx context.Context, processors *processor.Admin, args []string, by string) error {
		return do(ctx, processors, args[0], by)
	})
	consent := &console.ConsentFlag{Out: out}
	consent.Guard(cmd, func(args []string) string { return fmt.Sprintf(question, console.Flatten(args[0])) })
	return cmd
}
