// Package work implements the commands on processors of logs.
package work

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
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
