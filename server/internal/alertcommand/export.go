package alertcommand

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

// atMostOne rejects more than one argument.
func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return console.Usage("give one %s; %d are given", what, len(args))
		}
		return nil
	}
}

const alertsExportLong = `Write the alerts as a rule file for Prometheus: the alerts of the configuration file
if one is named, else those in the database.

Alertmanager then routes the notifications: the label "notify" has the addresses,
separated by commas. Let Prometheus also scrape /metrics/cluster, since some
conditions need its series with the value 0.`

// alertsExportCommand writes alerts as a rule file for Prometheus.
type alertsExportCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
}

func newAlertsExport(out *console.Output) *cobra.Command {
	c := &alertsExportCommand{out: out}
	cmd := &cobra.Command{
		Use: "export", Short: "Write alerts as a rule file for Prometheus", Long: alertsExportLong, Args: console.NoArgs,
		Example: "  tenure alerts export --config tenure.toml > tenure.rules.yaml",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.database.Register(cmd.Flags())
	return cmd
}

func (c *alertsExportCommand) run(cmd *cobra.Command) error {
	rules := settings.Of(cmd.Flags()).File.Alerts()
	if rules == nil {
		var err error
		if rules, err = c.stored(cmd.Context()); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	if err := alerts.Export(&text, rules); err != nil {
		return err
	}
	printed := strings.TrimSuffix(text.String(), "\n")
	return c.out.Print(map[string]string{"yaml": printed}, strings.Split(printed, "\n")...)
}

// stored returns the rules in the database.
func (c *alertsExportCommand) stored(ctx context.Context) ([]alerts.Rule, error) {
	list, err := readAlerts(ctx, &c.database)
	if err != nil {
		return nil, err
	}
	rules := make([]alerts.Rule, len(list))
	for i, s := range list {
		rules[i] = s.Rule
	}
	return rules, nil
}
