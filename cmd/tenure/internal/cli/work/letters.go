package work

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorDeadLettersLong = `List the dead letters of a processor in log order: events that it could not handle,
or that an operator skipped. tenure processor replay handles them again. Dismissed ones
are last.`

const processorReplayLong = `Request that the leader handles dead letters again: the named ones, or all with --all.
If there is no leader, the next one does so. They are handled one at a time, after later
events, and not while the processor is paused or has failed. An event that fails again
stays a dead letter, and tenure audit has a failed replay with the first error. --all leaves out dismissed ones.`

const processorDismissLong = `Mark dead letters as handled by a person: the named ones, or all with --all. They are
still listed, with who dismissed them, but count no longer as dead letters, and cause no
warning. A requested replay is canceled. tenure processor replay with an id takes the
dismissal back.`

func newProcessorDeadLetters(out *console.Output) *cobra.Command {
	return subject.ReadMost(&cobra.Command{
		Use: "dead-letters PROCESSOR", Short: "List the events that could not be handled or were skipped", Long: processorDeadLettersLong,
		Example: "  tenure processor dead-letters mails -n 100",
	}, func(ctx context.Context, processors *processor.Admin, args []string, most int) error {
		letters, err := processors.DeadLetters(ctx, args[0], most)
		if err != nil {
			return err
		}
		return out.PrintTable(record.NewDeadLetters(args[0], letters), letterRows(letters), "TERM", "REPLAY", "SKIPPED BY", "ATTEMPTS", "DISMISSED BY")
	})
}

func letterRows(letters []processor.DeadLetter) [][]string {
	rows := [][]string{{"ID", "EVENT", "FAILED AT", "ATTEMPTS", "TERM", "SKIPPED BY", "REPLAY", "DISMISSED BY", "ERROR"}}
	for _, l := range letters {
		replay := "-"
		switch {
		case l.Replay:
			replay = "requested"
		case !l.ReplayFailedAt.IsZero():
			replay = "failed again"
		}
		rows = append(rows, []string{
			console.Count(l.ID), l.Event.String(), console.DayTime(l.FailedAt), strconv.Itoa(l.Attempts), console.Count(l.Term),
			console.OrDash(console.Flatten(l.SkippedBy)), replay, console.OrDash(console.Flatten(l.DismissedBy)), console.Flatten(l.Error),
		})
	}
	return rows
}

func newProcessorReplay(out *console.Output) *cobra.Command {
	return lettersCommand(&cobra.Command{
		Use: "replay PROCESSOR ID... | PROCESSOR --all", Short: "Handle dead letters again", Long: processorReplayLong,
		Example: "  tenure processor replay mails 17 18\n  tenure processor replay mails --all",
	}, "replay all dead letters of the processor", func(ctx context.Context, processors *processor.Admin, name string, ids []int64, by string) error {
		n, err := processors.Replay(ctx, name, ids, by)
		if err != nil {
			return err
		}
		return out.Print(record.ReplayedLetters{Processor: name, Replaying: n}, fmt.Sprintf("dead letters to be replayed: %d", n))
	})
}

func newProcessorDismiss(out *console.Output) *cobra.Command {
	return lettersCommand(&cobra.Command{
		Use: "dismiss PROCESSOR ID... | PROCESSOR --all", Short: "Mark dead letters as handled by a person", Long: processorDismissLong,
		Example: "  tenure processor dismiss mails 17 18\n  tenure processor dismiss mails --all",
	}, "dismiss all dead letters of the processor", func(ctx context.Context, processors *processor.Admin, name string, ids []int64, by string) error {
		n, err := processors.Dismiss(ctx, name, ids, by)
		if err != nil {
			return err
		}
		return out.Print(record.DismissedLetters{Processor: name, Dismissed: n}, fmt.Sprintf("dismissed dead letters: %d", n))
	})
}

// lettersCommand completes a command to change dead letters: the ids after the processor,
// or all with --all.
func lettersCommand(cmd *cobra.Command, allHelp string, change func(ctx context.Context, processors *processor.Admin, name string, ids []int64, by string) error) *cobra.Command {
	var all bool
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return console.Usage("name the processor; see tenure processor list")
		case all && len(args) > 1:
			return console.Usage("name dead letters by their ids or use --all, not both")
		case !all && len(args) == 1:
			return console.Usage("name dead letters by their ids, or use --all; see tenure processor dead-letters")
		}
		_, err := letterIDs(args[1:])
		return err
	}
	cmd.ValidArgsFunction = subject.Complete
	subject.Change(cmd, func(ctx context.Context, processors *processor.Admin, args []string, by string) error {
		ids, err := letterIDs(args[1:])
		if err != nil {
			return err
		}
		return change(ctx, processors, args[0], ids, by)
	})
	cmd.Flags().BoolVar(&all, "all", false, allHelp)
	return cmd
}

// letterIDs parses the ids of dead letters; nil if there are none.
func letterIDs(args []string) ([]int64, error) {
	var ids []int64
	for _, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, console.Usage("%q is not the id of a dead letter: see tenure processor dead-letters", arg)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
