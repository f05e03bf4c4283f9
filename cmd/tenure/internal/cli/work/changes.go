package work

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

const processorChangesLong = `Print the changes by operators to processors, newest first: who paused, resumed,
rewound, rebuilt or repaired which one, skipped events, replayed or dismissed
them, and when.`

func newProcessorChanges(out *console.Output) *cobra.Command {
	return subject.Changes(out, &cobra.Command{
		Use: "changes [PROCESSOR]", Short: "Print who changed processors, and when", Long: processorChangesLong,
	}, "PROCESSOR", func(ctx context.Context, processors *processor.Admin, name string, most int) (record.OperatorChanges, error) {
		changes, err := processors.Changes(ctx, name, most)
		return record.NewProcessorChanges(changes), err
	})
}
