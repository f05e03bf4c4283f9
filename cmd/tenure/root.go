package main

import (
	"github.com/spf13/cobra"
)

const rootLong = `Tenure elects leaders on the PostgreSQL you already run: exactly one at a time,
replaced within milliseconds of its death. By leases it does so on SQLite, MySQL
and MariaDB, and on PostgreSQL behind a pooler (tenure_mode=lease).

Commands that talk to a database find it by --dsn, else by TENURE_DSN, PG_DSN or
DATABASE_URL, else by the file that --config or TENURE_CONFIG names, else by the
variables of libpq (PGHOST, PGSERVICE, ...). What is true of the database is true
of most flags: see tenure config.

  postgres://USER@HOST/DATABASE          also as key=value pairs; ?tenure_mode=lease behind a pooler
  mysql://USER@HOST:3306/DATABASE        also mariadb://
  sqlite:PATH                            for the programs of one machine, as is --local

Durations are written 5s, 1m30s or as seconds: 5.0.

Exit codes: 0 done, also after SIGTERM or SIGINT; 1 not acquired; 2 bad input:
something must be changed; 3 the database cannot be reached or used.`

// newRoot builds the program's tree of commands.
func newRoot() *cobra.Command {
	out := &output{format: formatText}
	var configuration configuration
	root := &cobra.Command{
		Use:           "tenure",
		Short:         "Leader election on PostgreSQL",
		Long:          rootLong,
		Version:       programVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q; see tenure --help", args[0])
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			out.w = cmd.OutOrStdout()
			return configure(cmd)
		},
	}
	root.PersistentFlags().VarP(&out.format, "output", "o", "how to print: text or json")
	configuration.register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	root.AddCommand(
		newRun(out), newAcquire(out), newStatus(out), newObserve(out), newStepDown(out), newRetire(out),
		newCluster(out), newNodes(out), newRebalance(out), newCron(out), newProcessor(out),
		newServe(out), newHistory(out), newAlerts(out), newDoctor(out), newMigrate(out), newDemo(out), newDemoNode(out), newVersion(out),
		newConfig(out, root), newHealth(out), newManual(root),
	)
	complete(root)
	return root
}
