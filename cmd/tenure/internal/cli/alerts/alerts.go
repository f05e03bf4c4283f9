// Package alerts implements the commands on alerts.
package alerts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/alerts"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
)

const alertsLong = `Show, silence, acknowledge, check, try out and export alerts.

An alert is an [[alerts]] table of the configuration file: a condition, in PromQL
over the metrics of all nodes, and the notifiers to use. tenure serve writes the
alerts to the database, and the leader of metrics-aggregator evaluates them.`

// New returns the command "tenure alerts".
func New(out *console.Output) *cobra.Command {
	return console.Group("alerts", "Show and check alerts", alertsLong,
		newAlertsList(out), newAlertsCheck(out), newAlertsTest(out), newAlertsExport(out),
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

// AlertsRecord is the printed result.
type AlertsRecord struct {
	Alerts []AlertRecord `json:"alerts"`
}

// AlertRecord is an alert as printed.
type AlertRecord struct {
	Name                 string            `json:"name"`
	State                string            `json:"state"`
	Condition            string            `json:"condition"`
	For                  float64           `json:"for_seconds"`
	Severity             string            `json:"severity"`
	Labels               map[string]string `json:"labels"`
	Annotations          map[string]string `json:"annotations"`
	Description          string            `json:"description"`
	Runbook              string            `json:"runbook"`
	Notify               []string          `json:"notify"`
	ChangedAt            console.Timestamp `json:"changed_at"`
	ChangedBy            string            `json:"changed_by"`
	Problem              string            `json:"problem"`
	PendingNotifications int               `json:"pending_notifications"`
	FailedNotifications  int               `json:"failed_notifications"`
	NotificationProblem  string            `json:"notification_problem"`
	Series               []seriesRecord    `json:"series"`
}

type seriesRecord struct {
	State       string            `json:"state"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Value       string            `json:"value"` // a string, since it may be NaN or infinite
	ActiveAt    console.Timestamp `json:"active_at"`
	FiredAt     console.Timestamp `json:"fired_at"` // null while pending

	VacantSince       console.Timestamp `json:"vacant_since"` // null if that is not known
	Incident          string            `json:"incident"`
	AcknowledgedBy    string            `json:"acknowledged_by"`
	AcknowledgedUntil console.Timestamp `json:"acknowledged_until"`
	SilencedBy        string            `json:"silenced_by"`
	SilencedUntil     console.Timestamp `json:"silenced_until"`
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
	record := AlertsRecord{Alerts: []AlertRecord{}}
	rows := [][]string{{"ALERT", "STATE", "SEVERITY", "FOR", "SERIES", "TO SEND", "CHANGED", "BY", "NOTIFIES"}}
	var below []string
	for _, s := range list {
		if c.state != "" && string(s.State) != c.state {
			continue
		}
		record.Alerts = append(record.Alerts, newAlertRecord(s))
		rows = append(rows, alertRow(s))
		below = append(below, alertDetails(s)...)
	}
	return c.out.PrintText(record, func(page *console.Page) {
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
	list, err := alerts.List(ctx, database.Backend, database.Pool)
	return list, flags.Explain(err)
}

func newAlertRecord(s alerts.Status) AlertRecord {
	r := AlertRecord{
		Name: s.Name, State: string(s.State), Condition: s.Condition, For: s.For.Seconds(), Severity: s.Severity,
		Labels: s.Labels, Annotations: s.Annotations, Description: s.Description, Runbook: s.Runbook, Notify: append([]string{}, s.Notify...),
		ChangedAt: console.Timestamp(s.ChangedAt), ChangedBy: s.ChangedBy, Problem: s.Problem,
		PendingNotifications: s.PendingNotifications, FailedNotifications: s.FailedNotifications, NotificationProblem: s.NotificationProblem,
		Series: []seriesRecord{},
	}
	for _, a := range s.Alerts {
		r.Series = append(r.Series, seriesRecord{
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
