package work

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/processor"
)

const processorChangesLong = `Print what was done to processors by hand, the latest first: who paused, resumed,
rewound, rebuilt or repaired which one, skipped events or replayed them, and when.`

func newProcessorChanges(out *console.Output) *cobra.Command {
	var database connect.DatabaseFlags
	return connect.ChangesCommand(&database, &cobra.Command{
		Use: "changes [PROCESSOR]", Short: "Print who changed processors, and when", Long: processorChangesLong,
		Args: oneProcessor, ValidArgsFunction: completeProcessor,
	}, func(cmd *cobra.Command, name string, most int) error {
		return withProcessors(cmd.Context(), &database, func(processors *processor.Management) error {
			changes, err := processors.Changes(cmd.Context(), name, most)
			if err != nil {
				return err
			}
			var records []connect.ChangeRecord
			for _, c := range changes {
				records = append(records, connect.ChangeRecord{At: console.Timestamp(c.At), By: c.By, Name: c.Processor, Action: c.Action, Detail: c.Detail})
			}
			return connect.PrintChanges(out, "PROCESSOR", records)
		})
	})
}
