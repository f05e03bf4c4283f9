package work

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/record"
	"github.com/exactly-one/tenure/processor"
)

const processorDeadLettersLong = `List the dead letters of a processor in log order: events that it could not handle,
or that an operator skipped. tenure processor replay handles them again.`

const processorReplayLong = `Request that the leader handles dead letters again: the named ones, or all with --all.
If there is no leader, the next one does so. They are handled one at a time, after later
events, and not while the processor is paused or has failed. An event that fails again
stays a dead letter.`

func newProcessorDeadLetters(out *console.Output) *cobra.Command {
	return subject.ReadMost(&cobra.Command{
		Use: "dead-letters PROCESSOR", Short: "List the events that could not be handled or were skipped", Long: processorDeadLettersLong,
		Example: "  tenure processor dead-letters mails -n 100",
	}, func(ctx context.Context, processors *processor.Admin, args []string, most int) error {
		letters, err := processors.DeadLetters(ctx, args[0], most)
		if err != nil {
			return err
		}
		return out.PrintTable(record.NewDeadLetters(args[0], letters), letterRows(letters), "TERM", "REPLAY", "SKIPPED BY", "ATTEMPTS")
	})
}

func letterRows(letters []processor.DeadLetter) [][]string {
	rows := [][]string{{"ID", "EVENT", "FAILED AT", "ATTEMPTS", "TERM", "SKIPPED BY", "REPLAY", "ERROR"}}
	for _, l := range letters {
		replay := "-"
		if l.Replay {
			replay = "requested"
		}
		rows = append(rows, []string{
			console.Count(l.ID), l.Event.String(), console.DayTime(l.FailedAt), strconv.Itoa(l.Attempts), console.Count(l.Term),
			console.OrDash(console.Flatten(l.SkippedBy)), replay, console.Flatten(l.Error),
		})
	}
	return rows
}

func newProcessorReplay(out *console.Output) *cobra.Command {
	var all bool
	cmd := subject.Change(&cobra.Command{
		Use: "replay PROCESSOR ID... | PROCESSOR --all", Short: "Handle dead letters again", Long: processorReplayLong,
		Example: "  tenure processor replay mails 17 18\n  tenure processor replay mails --all",
		Args: func(_ *cobra.Command, args []string) error {
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
		},
		ValidArgsFunction: subject.Complete,
	}, func(ctx context.Context, processors *processor.Admin, args []string, by string) error {
		ids, err := letterIDs(args[1:])
		if err != nil {
			return err
		}
		n, err := processors.Replay(ctx, args[0], ids, by)
		if err != nil {
			return err
		}
		return out.Print(record.ReplayedLetters{Processor: args[0], Replaying: n}, fmt.Sprintf("dead letters to be replayed: %d", n))
	})
	cmd.Flags().BoolVar(&all, "all", false, "replay all dead letters of the processor")
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
