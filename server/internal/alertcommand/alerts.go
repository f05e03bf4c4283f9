// Package alertcommand implements the commands on alerts.
package alertcommand

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

const alertsLong = `Show, silence, acknowledge, try out and export alerts.

An alert is an [[alerts]] table of the configuration file: a condition, in PromQL
over the metrics of all nodes, and the notifiers to use. tenure serve writes the
alerts to the database, and the leader of metrics-aggregator evaluates them.`

// New returns the command "tenure alerts".
func New(out *console.Output) *cobra.Command {
	return console.Group("alerts", "Show, silence and try out alerts", alertsLong,
		newAlertsList(out), newAlertsTest(out), newAlertsExport(out),
		newAlertsSilence(out), newAlertsUnsilence(out), newAlertsSilences(out), newAlertsAcknowledge(out), newAlertsHistory(out))
}

const alertsListLong = `List the alerts in the database with their states: inactive, pending (the condition
holds, but not yet for long enough) or firing. SERIES counts the series of the
condition. TO SEND counts unsent notifications: waiting, to be retried, or failed.
Pending and firing series, and problems, follow the table.`

// alertsListCommand lists the alerts of the database with their states.
type alertsListCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	state    string
}

func newAlertsList(out *console.Output) *cobra.Command {
	c := &alertsListCommand{out: out}
	cmd := &cobra.Command{
		Use: "list", Short: "List alerts with their states", Long: alertsListLong, Args: console.NoArgs,
		Example: "  tenure alerts list\n  tenure alerts list --state firing -o json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.state, "state", "", "list only alerts in this state: inactive, pending or firing")
	c.database.Register(flags)
	return cmd
}

func (c *alertsListCommand) run(ctx context.Context) error {
	switch alerts.State(c.state) {
	case "", alerts.Inactive, alerts.Pending, alerts.Firing:
	default:
		return console.Usage("--state is %q; it must be inactive, pending or firing", c.state)
	}
	list, err := readAlerts(ctx, &c.database)
	if err != nil {
		return err
	}
	printed := record.Alerts{Alerts: []record.Alert{}}
	rows := [][]string{{"ALERT", "STATE", "SEVERITY", "FOR", "SERIES", "TO SEND", "CHANGED", "BY", "NOTIFIES"}}
	var below []string
	for _, s := range list {
		if c.state != "" && string(s.State) != c.state {
			continue
		}
		printed.Alerts = append(printed.Alerts, newAlertRecord(s))
		rows = append(rows, alertRow(s))
		below = append(below, alertDetails(s)...)
	}
	return c.out.PrintText(printed, func(page *console.Page) {
		page.Table(rows, "BY", "FOR", "TO SEND", "NOTIFIES", "SERIES")
		if len(below) > 0 {
			fmt.Fprintf(page, "\n%s\n", strings.Join(below, "\n"))
		}
	})
}

// alertsTimeout limits reading all alerts.
const alertsTimeout = 30 * time.Second

// readAlerts reads the alerts of the database; none if there is no schema.
func readAlerts(ctx context.Context, flags *connect.DatabaseFlags) ([]alerts.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, alertsTimeout)
	defer cancel()
	database, err := flags.Work(ctx)
	if err != nil {
		return nil, err
	}
	defer database.Close()
	version, err := database.SchemaVersion(ctx)
	if err != nil || version == 0 {
		return nil, err
	}
	list, err := alerting.List(ctx, database.Backend, database.Pool)
	return list, flags.Explain(err)
}

func newAlertRecord(s alerts.Status) record.Alert {
	r := record.Alert{
		Name: s.Name, State: string(s.State), Condition: s.Condition, For: s.For.Seconds(), Severity: s.Severity,
		Labels: s.Labels, Annotations: s.Annotations, Description: s.Description, Runbook: s.Runbook, Notify: append([]string{}, s.Notify...),
		ChangedAt: console.Timestamp(s.ChangedAt), ChangedBy: s.ChangedBy, Problem: s.Problem,
		PendingNotifications: s.PendingNotifications, FailedNotifications: s.FailedNotifications, NotificationProblem: s.NotificationProblem,
		Series: []record.AlertSeries{},
	}
	for _, a := range s.Alerts {
		r.Series = append(r.Series, record.AlertSeries{
			State: string(a.State), Labels: a.Labels, Annotations: a.Annotations, Value: strconv.FormatFloat(a.Value, 'g', -1, 64),
			ActiveAt: console.Timestamp(a.ActiveAt), FiredAt: console.Timestamp(a.FiredAt),
			VacantSince: console.Timestamp(a.VacantSince), Incident: a.Incident,
			AcknowledgedBy: a.AckedBy, AcknowledgedUntil: console.Timestamp(a.AckedUntil),
			SilencedBy: a.SilencedBy, SilencedUntil: console.Timestamp(a.SilencedUntil),
		})
	}
	return r
}

func alertRow(s alerts.Status) []string {
	unsent := "-"
	if s.PendingNotifications > 0 || s.FailedNotifications > 0 {
		unsent = strconv.Itoa(s.PendingNotifications)
		if s.FailedNotifications > 0 {
			unsent += ", " + strconv.Itoa(s.FailedNotifications) + " not sent"
		}
	}
	return []string{
		console.Flatten(s.Name), string(s.State), s.Severity, s.For.String(), strconv.Itoa(len(s.Alerts)), unsent,
		console.ShortTime(s.ChangedAt), console.Flatten(s.ChangedBy), console.OrDash(strings.Join(s.Notify, ", ")),
	}
}
