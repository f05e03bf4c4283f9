package cli

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/alerts"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cron"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/demo"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/proxy"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/run"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/serve"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/settings"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/top"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/work"
	"github.com/exactly-one/tenure/cmd/tenure/internal/version"
)

const rootLong = `Tenure elects leaders on the PostgreSQL you already run. A role has at most one
leader at a time. When the leader crashes, a standby takes over within milliseconds.
With leases, Tenure also elects on SQLite, MySQL and MariaDB, and on PostgreSQL
behind a pooler (tenure_mode=lease).

A command finds the database in the first of these that is set: --dsn; TENURE_DSN,
PG_DSN or DATABASE_URL; the file that --config or TENURE_CONFIG names; libpq's variables
(PGHOST, PGSERVICE, ...). Most other settings are looked up in the same order: see
tenure config.

  postgres://USER@HOST/DATABASE          also as key=value pairs; ?tenure_mode=lease behind a pooler
  mysql://USER@HOST:3306/DATABASE        also mariadb://
  sqlite:PATH                            for programs on one machine; --local chooses the path

Durations are written 5s, 1m30s or as seconds: 5.0.

Exit codes: 0 done, also after SIGTERM or SIGINT; 1 not acquired, or not done in time; 2
the command line, the configuration or the request must be changed; 3 the database
cannot be reached or used.`

// newRoot builds the program's tree of commands.
func newRoot() *cobra.Command {
	out := &console.Output{Format: console.FormatText, Color: console.ColorAuto}
	var configuration settings.Configuration
	root := &cobra.Command{
		Use:           "tenure",
		Short:         "Leader election on PostgreSQL",
		Long:          rootLong,
		Version:       version.Read().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return console.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			out.Writer = cmd.OutOrStdout()
			return settings.Configure(cmd)
		},
	}
	root.PersistentFlags().VarP(&out.Format, "output", "o", "how to print: text, wide (tables with all columns on a terminal) or json")
	root.PersistentFlags().Var(&out.Color, "color", "color the states in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
	configuration.Register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 { // the flag is that of a command with a typo
			return console.UnknownCommand(cmd, words[0])
		}
		return console.Usage("%w", err)
	})
	root.AddCommand(
		run.New(out), run.NewAcquire(out), run.NewAgent(), roles.NewStatus(out), top.New(out), roles.NewObserve(out), roles.NewStepDown(out), roles.NewRetire(out), roles.NewRole(out, completeRoles),
		proxy.New(out), cluster.New(out), cluster.NewNodes(out), cluster.NewRebalance(out), cron.New(out), work.New(out),
		serve.New(out), roles.NewHistory(out), alerts.New(out), work.NewAudit(out), database.NewDoctor(out), database.NewMigrate(out), demo.New(out), run.NewDemoNode(out), newVersion(out),
		newConfig(out, root), run.NewHealth(out), newManual(root),
	)
	complete(root)
	describe(root)
	refuseUnknownHelp(root)
	return root
}

// refuseUnknownHelp makes "help" refuse what is no command.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it was just added
	root.RemoveCommand(help)                  // until Execute adds it: it is in no list of commands
	show := help.Run
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if group, rest, err := root.Find(args); err == nil && len(rest) > 0 && group.HasSubCommands() {
			return console.UnknownCommand(group, rest[0])
		}
		show(cmd, args)
		return nil
	}
}
