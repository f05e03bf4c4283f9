package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/processor"
)

const processorLong = `Look at processors and change them: views, outboxes and whatever else works off a
log of events on the leader of a role. Every change is recorded with who made it.`

func newProcessor(out *output) *cobra.Command {
	return group("processor", "Processors of events: look at them, change them", processorLong,
		newProcessorList(out), newProcessorShow(out), newProcessorLag(out), newProcessorChanges(out),
		newProcessorPause(out), newProcessorResume(out), newProcessorRetry(out), newProcessorSkip(out),
		newProcessorDeadLetters(out), newProcessorReplay(out),
		newProcessorRewind(out), newProcessorRebuild(out), newProcessorRepair(out))
}

// withProcessors opens the processors of a database.
func withProcessors(ctx context.Context, database *databaseFlags, fn func(*processor.Management) error) error {
	opened, err := database.work(ctx)
	if err != nil {
		return err
	}
	defer opened.Close()
	err = fn(processor.NewManagement(opened.Backend, opened.pool))
	var unknown *processor.UnknownError
	if errors.As(err, &unknown) {
		return unknownName(err, "processor", unknown.Name, unknown.Known)
	}
	return database.explain(err)
}

// oneProcessor demands one argument: a processor.
func oneProcessor(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usage("name the processor; see tenure processor list")
	case len(args) > 1:
		return usage("%s takes one processor, but got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// completeProcessor offers the processors that there are.
var completeProcessor = completeWork(func(ctx context.Context, database *workDatabase) ([]cobra.Completion, error) {
	statuses, err := processor.NewManagement(database.Backend, database.pool).List(ctx)
	var names []cobra.Completion
	for _, s := range statuses {
		names = append(names, cobra.CompletionWithDesc(s.Name, flatten(s.Kind+", "+s.Status)))
	}
	return names, err
})
