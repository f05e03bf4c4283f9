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
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/work"
	"github.com/exactly-one/tenure/cmd/tenure/internal/version"
)

const rootLong = `Tenure elects leaders on the PostgreSQL you already run: at most one at a time,
replaced within milliseconds of its death. By leases it does so on SQLite, MySQL
and MariaDB, and on PostgreSQL behind a pooler (tenure_mode=lease).

Commands that use a database find it by --dsn, else by TENURE_DSN, PG_DSN or
DATABASE_URL, else by the file that --config or TENURE_CONFIG names, else by libpq's
variables (PGHOST, PGSERVICE, ...). The same order applies to most flags: see tenure
config.

  postgres://USER@HOST/DATABASE          also as key=value pairs; ?tenure_mode=lease behind a pooler
  mysql://USER@HOST:3306/DATABASE        also mariadb://
  sqlite:PATH                            for the programs of one machine, like --local

Durations are written 5s, 1m30s or as seconds: 5.0.

Exit codes: 0 done, also after SIGTERM or SIGINT; 1 not acquired; 2 bad input:
something must be changed; 3 the database cannot be reached or used.`

// newRoot builds the program's tree of commands.
func newRoot() *cobra.Command {
	out := &console.Output{Format: console.FormatText}
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
	root.PersistentFlags().VarP(&out.Format, "output", "o", "how to print: text or json")
	configuration.Register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Usage("%w", err) })
	root.AddCommand(
		run.New(out), run.NewAcquire(out), run.NewAgent(), roles.NewStatus(out), roles.NewObserve(out), roles.NewStepDown(out), roles.NewRetire(out),
		proxy.New(out), cluster.New(out), cluster.NewNodes(out), cluster.NewRebalance(out), cron.New(out), work.New(out),
		serve.New(out), roles.NewHistory(out), alerts.New(out), database.NewDoctor(out), database.NewMigrate(out), demo.New(out), run.NewDemoNode(out), newVersion(out),
		newConfig(out, root), run.NewHealth(out), newManual(root),
	)
	complete(root)
	return root
}
