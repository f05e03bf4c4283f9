package alertcommand

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

const alertsCheckLong = `Check the alerts of a configuration file. Errors are reported with line and column:
invalid PromQL, templates and labels, notifiers that are not configured, and metrics
that do not exist.

Exits 0 if there is no error and 2 if there is one. Without FILE, the command checks
the file that --config or TENURE_CONFIG names.`

func newAlertsCheck(out *console.Output) *cobra.Command {
	var unknown settings.UnknownMetrics
	cmd := &cobra.Command{
		Use: "check [FILE]", Short: "Check the alerts in a configuration file", Long: alertsCheckLong,
		Example: "  tenure alerts check tenure.toml",
		Args:    atMostOne("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, path, err := namedFile(cmd, args)
			if err != nil {
				return err
			}
			if err := unknown.Refuse(file); err != nil {
				return err
			}
			rules := file.Alerts()
			warnings := append([]string{}, file.DoubtfulAlerts()...)
			record := alertsCheckRecord{path, len(rules), warnings}
			summary := fmt.Sprintf("%s: no errors; alerts: %d", path, len(rules))
			return out.Print(record, append(warnings, summary)...)
		},
	}
	unknown.Register(cmd.Flags())
	return cmd
}

// alertsCheckRecord is the printed result of a check.
type alertsCheckRecord struct {
	File     string   `json:"file"`
	Alerts   int      `json:"alerts"`
	Warnings []string `json:"warnings"`
}

// atMostOne rejects more than one argument.
func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return console.Usage("give one %s; %d are given", what, len(args))
		}
		return nil
	}
}

// namedFile reads the configuration file of the command's argument, or of the flag or
// variable.
func namedFile(cmd *cobra.Command, args []string) (file *config.File, path string, err error) {
	c := settings.Of(cmd.Flags())
	if len(args) > 0 {
		c.Path = args[0]
	}
	if err := c.Load(cmd.Context()); err != nil {
		return nil, "", err
	}
	if c.Path == "" {
		return nil, "", console.Usage("no file is named: use an argument, --%s or %s", settings.ConfigFlag, settings.ConfigVariable)
	}
	return c.File, c.Path, nil
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
