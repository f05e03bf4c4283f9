package cron

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
)

// subject describes schedules to the shared commands.
var subject = &connect.Subject[*cron.Admin]{
	Name: "schedule", List: "tenure cron list",
	Open: func(database *connect.WorkDatabase) *cron.Admin {
		return cron.NewAdmin(database.Backend, database.Pool)
	},
	Offer: func(ctx context.Context, schedules *cron.Admin) ([]cobra.Completion, error) {
		statuses, err := schedules.List(ctx)
		var names []cobra.Completion
		for _, s := range statuses {
			names = append(names, cobra.CompletionWithDesc(s.Name, console.Flatten(s.Expression+" "+s.Zone)))
		}
		return names, err
	},
	Unknown: func(err error) (name string, known []string) {
		var unknown *cron.UnknownError
		if errors.As(err, &unknown) {
			return unknown.Name, unknown.Known
		}
		return "", nil
	},
}
