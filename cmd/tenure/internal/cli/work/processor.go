// Package work has the commands on processors of logs.
package work

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/processor"
)

const processorLong = `Look at processors and change them: views, outboxes and whatever else works off a
log of events on the leader of a role. Every change is recorded with who made it.`

// New returns the command "tenure processor".
func New(out *console.Output) *cobra.Command {
	return console.Group("processor", "Processors of events: look at them, change them", processorLong,
		newProcessorList(out), newProcessorShow(out), newProcessorLag(out), newProcessorChanges(out),
		newProcessorPause(out), newProcessorResume(out), newProcessorRetry(out), newProcessorSkip(out),
		newProcessorDeadLetters(out), newProcessorReplay(out),
		newProcessorRewind(out), newProcessorRebuild(out), newProcessorRepair(out))
}

// withProcessors opens the processors of a database.
func withProcessors(ctx context.Context, database *connect.DatabaseFlags, fn func(*processor.Management) error) error {
	opened, err := database.Work(ctx)
	if err != nil {
		return err
	}
	defer opened.Close()
	err = fn(processor.NewManagement(opened.Backend, opened.Pool))
	var unknown *processor.UnknownError
	if errors.As(err, &unknown) {
		return connect.UnknownName(err, "processor", unknown.Name, unknown.Known)
	}
	return database.Explain(err)
}

// oneProcessor demands one argument: a processor.
func oneProcessor(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return console.Usage("name the processor; see tenure processor list")
	case len(args) > 1:
		return console.Usage("%s takes one processor, but got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// completeProcessor offers the processors that there are.
var completeProcessor = connect.CompleteWork(func(ctx context.Context, database *connect.WorkDatabase) ([]cobra.Completion, error) {
	statuses, err := processor.NewManagement(database.Backend, database.Pool).List(ctx)
	var names []cobra.Completion
	for _, s := range statuses {
		names = append(names, cobra.CompletionWithDesc(s.Name, console.Flatten(s.Kind+", "+s.Status)))
	}
	return names, err
})
