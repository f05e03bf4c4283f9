package work

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/processor"
)

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
