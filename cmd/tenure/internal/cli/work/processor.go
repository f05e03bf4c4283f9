// Package work implements the commands on processors of logs.
package work

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/processor"
)

const processorLong = `Show and change processors: views, outboxes and others that read a log of events on
the leader of a role. Every change is recorded with its requester.`

// New returns the command "tenure processor".
func New(out *console.Output) *cobra.Command {
	return console.Group("processor", "Show and change processors of events", processorLong,
		newProcessorList(out), newProcessorShow(out), newProcessorLag(out),
		newProcessorPause(out), newProcessorResume(out), newProcessorRetry(out), newProcessorSkip(out),
		newProcessorDeadLetters(out), newProcessorReplay(out), newProcessorDismiss(out),
		newProcessorRewind(out), newProcessorRebuild(out), newProcessorRepair(out))
}

// subject describes processors to the shared commands.
var subject = &connect.Subject[*processor.Admin]{
	Name: "processor", List: "tenure processor list",
	Open: func(database *connect.WorkDatabase) *processor.Admin {
		return processor.NewAdmin(database.Backend, database.Pool)
	},
	Offer: func(ctx context.Context, processors *processor.Admin) ([]cobra.Completion, error) {
		statuses, err := processors.List(ctx)
		var names []cobra.Completion
		for _, s := range statuses {
			names = append(names, cobra.CompletionWithDesc(s.Name, console.Flatten(s.Kind+", "+s.Status)))
		}
		return names, err
	},
	Unknown: func(err error) (name string, known []string) {
		var unknown *processor.UnknownError
		if errors.As(err, &unknown) {
			return unknown.Name, unknown.Known
		}
		return "", nil
	},
}
