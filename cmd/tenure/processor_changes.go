package main

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/processor"
)

const processorChangesLong = `Print what was done to processors by hand, the latest first: who paused, resumed,
rewound, rebuilt or repaired which one, skipped events or replayed them, and when.`

func newProcessorChanges(out *output) *cobra.Command {
	var database databaseFlags
	return changesCommand(&database, &cobra.Command{
		Use: "changes [PROCESSOR]", Short: "Print who changed processors, and when", Long: processorChangesLong,
		Args: oneProcessor, ValidArgsFunction: completeProcessor,
	}, func(cmd *cobra.Command, name string, most int) error {
		return withProcessors(cmd.Context(), &database, func(processors *processor.Management) error {
			changes, err := processors.Changes(cmd.Context(), name, most)
			if err != nil {
				return err
			}
			var records []handChangeRecord
			for _, c := range changes {
				records = append(records, handChangeRecord{At: timestamp(c.At), By: c.By, Name: c.Processor, Action: c.Action, Detail: c.Detail})
			}
			return printChanges(out, "PROCESSOR", records)
		})
	})
}
