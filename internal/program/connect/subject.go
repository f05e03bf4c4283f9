package connect

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/nearest"
)

// Subject is a kind of object for a family of commands, read and changed by name, such as
// schedules. An M does so in a database.
type Subject[M any] struct {
	Name string // used in sentences
	List string // the command to list the objects
	Open func(*WorkDatabase) M
	// Offer returns completions.
	Offer func(context.Context, M) ([]cobra.Completion, error)
	// Unknown returns the name in an error about an unknown object, and the
	// known names.
	Unknown func(error) (name string, known []string)
}

// One requires one argument: a name.
func (s *Subject[M]) One(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return console.Usage("name the %s; see %s", s.Name, s.List)
	case len(args) > 1:
		return console.Usage("%s takes one %s, but got %d", cmd.CommandPath(), s.Name, len(args))
	}
	return nil
}

// Complete offers names for the command's argument.
func (s *Subject[M]) Complete(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return Ask(cmd, begun, func(ctx context.Context, _ Backend) ([]cobra.Completion, error) {
		database, err := databaseFlagsOf(cmd.Flags()).Work(ctx)
		if err != nil {
			return nil, err
		}
		defer database.Close()
		return s.Offer(ctx, s.Open(database))
	})
}

// With opens the database for fn, and rewords its error.
func (s *Subject[M]) With(ctx context.Context, database *DatabaseFlags, fn func(M) error) error {
	opened, err := database.Work(ctx)
	if err != nil {
		return err
	}
	defer opened.Close()
	err = fn(s.Open(opened))
	name, known := s.Unknown(err)
	if meant := nearest.Of(name, known); meant != "" {
		return console.Usage("there is no %s %q; did you mean %q?", s.Name, name, meant)
	}
	return database.Explain(err)
}

// Read makes a command run do with the database. Unless the command sets Args,
// its argument is one name.
func (s *Subject[M]) Read(cmd *cobra.Command, do func(ctx context.Context, m M, args []string) error) *cobra.Command {
	var database DatabaseFlags
	database.Register(cmd.Flags())
	if cmd.Args == nil {
		cmd.Args, cmd.ValidArgsFunction = s.One, s.Complete
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.With(cmd.Context(), &database, func(m M) error { return do(cmd.Context(), m, args) })
	}
	return cmd
}

// ReadMost is Read with a flag for the number of rows.
func (s *Subject[M]) ReadMost(cmd *cobra.Command, do func(ctx context.Context, m M, args []string, most int) error) *cobra.Command {
	most := flagvalue.Number{Value: 20, Most: maxRows}
	cmd.Flags().VarP(&most, "count", "n", "number of rows")
	s.Read(cmd, func(ctx context.Context, m M, args []string) error { return do(ctx, m, args, most.Value) })
	return before(cmd, func() error { return CheckCount(most.Value) })
}

// Change is Read with a flag for the requester.
func (s *Subject[M]) Change(cmd *cobra.Command, do func(ctx context.Context, m M, args []string, by string) error) *cobra.Command {
	var by byFlag
	by.register(cmd.Flags())
	s.Read(cmd, func(ctx context.Context, m M, args []string) error {
		return do(ctx, m, args, by.requester(cmd.Flags()))
	})
	return before(cmd, func() error { return by.check(cmd.Flags()) })
}

// before makes a command run check before it opens the database.
func before(cmd *cobra.Command, check func() error) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}
