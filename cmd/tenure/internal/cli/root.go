package cli

import (
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cluster"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/cron"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/demo"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/lead"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/proxy"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/run"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/top"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/work"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/tree"
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
	root := tree.New("tenure", "Leader election on PostgreSQL", rootLong, out)
	root.AddCommand(
		run.New(out), run.NewAcquire(out), run.NewAgent(), roles.NewStatus(out), top.New(out), roles.NewObserve(out), roles.NewStepDown(out), roles.NewRetire(out), roles.NewRole(out, tree.CompleteRoles),
		proxy.New(out), cluster.New(out), cluster.NewNodes(out), cluster.NewRebalance(out), cron.New(out), work.New(out),
		door("serve", "Serve the dashboard, evaluate alerts, and roll up the history"), roles.NewHistory(out), door("alerts", "Show, silence and try out alerts"),
		work.NewAudit(out), database.NewDoctor(out), database.NewMigrate(out), demo.New(out), run.NewDemoNode(out), tree.NewVersion(out),
		newConfig(out), run.NewHealth(out), tree.NewManual(root),
	)
	tree.Complete(root, map[string]cobra.CompletionFunc{
		"days": cobra.FixedCompletions(roles.DayKinds, cobra.ShellCompDirectiveNoFileComp),
		"restart": cobra.FixedCompletions(
			[]string{string(lead.RestartNever), string(lead.RestartOnFailure), string(lead.RestartAlways)}, cobra.ShellCompDirectiveNoFileComp),
	})
	return root
}
