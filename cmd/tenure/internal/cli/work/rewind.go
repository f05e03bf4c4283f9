package work

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorRewindLong = `Move a processor's cursor, back or forward, to just after an event, or to the start of
the log. The batch in flight is discarded. Later events are handled again: an outbox
publishes them again, and a view applies them again to its present content. To fill a
view from nothing, use tenure processor rebuild. Dead letters after the cursor are
removed, since their events are handled again. The command asks for confirmation;
without a terminal, use --yes.`

// eventFlag is a flag for an event's position in a log.
type eventFlag struct{ place processor.Cursor }

// Set implements pflag.Value.
func (f *eventFlag) Set(text string) (err error) {
	f.place, err = record.ParseEvent(text)
	return err
}

func (f *eventFlag) String() string { return "" }

// Type implements pflag.Value.
func (f *eventFlag) Type() string { return "place" }

// placeFlag is a flag for a position in a log, or its start.
type placeFlag struct{ place processor.Cursor }

// Set implements pflag.Value.
func (f *placeFlag) Set(text string) (err error) {
	f.place, err = record.ParsePlace(text)
	return err
}

func (f *placeFlag) String() string { return "" }

// Type implements pflag.Value.
func (f *placeFlag) Type() string { return "place" }

func newProcessorRewind(out *console.Output) *cobra.Command {
	var to placeFlag
	c, dangerous := &processorChange{out: out, done: "is rewound"}, &console.ConsentFlag{Out: out}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Rewind(ctx, name, to.place, by)
	}
	cmd := c.command(&cobra.Command{
		Use: "rewind PROCESSOR --to PLACE", Short: "Move a processor's cursor", Long: processorRewindLong,
		Example: "  tenure processor rewind balances --to 742:1031\n  tenure processor rewind balances --to start --yes",
	})
	cmd.Flags().Var(&to, "to", "start, or a position in the log as TRANSACTION:POSITION; later events are handled again")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("to") {
			return console.Usage("--to is missing: use %s, or a position in the log such as 742:1031", record.LogStart)
		}
		return subject.One(cmd, args)
	}
	dangerous.Guard(cmd, func(args []string) string {
		place := to.place.String()
		if to.place == (processor.Cursor{}) {
			place = "the start of the log"
		}
		return fmt.Sprintf("Handle the events after %s again with %s?", place, console.Flatten(args[0]))
	})
	return cmd
}

const processorRebuildLong = `Request that the leader empties the output of a processor and starts at the beginning
of the log, in one transaction. If there is no leader, the next one does so. A
processor without a reset, such as an outbox, is refused with exit code 2. The
command asks for confirmation; without a terminal, use --yes.`

func newProcessorRebuild(out *console.Output) *cobra.Command {
	c, dangerous := &processorChange{out: out, done: "is to be rebuilt"}, &console.ConsentFlag{Out: out}
	c.change = func(ctx context.Context, processors *processor.Admin, name, by string) error {
		return processors.Rebuild(ctx, name, by)
	}
	cmd := c.command(&cobra.Command{
		Use: "rebuild PROCESSOR", Short: "Empty a processor's output and reprocess the log from the start", Long: processorRebuildLong,
		Example: "  tenure processor rebuild balances --yes",
	})
	dangerous.Guard(cmd, func(args []string) string {
		return fmt.Sprintf("Empty the output of %s and reprocess the log from the start?", console.Flatten(args[0]))
	})
	return cmd
}
