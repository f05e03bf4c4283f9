package alertcommand

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

func newAlertsHistory(out *console.Output) *cobra.Command {
	var since, until flagvalue.Moment
	cmd := &cobra.Command{
		Use: "history [NAME]", Short: "List alerts that fired",
		Long: "List the alerts that fired, latest first: how long each fired, who silenced or\n" +
			"acknowledged it, and its incident. Alerts are kept for 90 days after their end.",
		Example: "  tenure alerts history --since 24h\n  tenure alerts history no_leader -n 100",
		Args:    atMostOne("alert"), ValidArgsFunction: subject.Complete,
	}
	cmd.Flags().Var(&since, "since", "show what ended after this: a time in RFC 3339, or an age such as 24h")
	cmd.Flags().Var(&until, "until", "show what fired before this: a time in RFC 3339, or an age such as 24h")
	return subject.ReadMost(cmd, func(ctx context.Context, admin *alerts.Admin, args []string, most int) error {
		now := time.Now()
		query := alerts.HistoryQuery{Rule: strings.Join(args, ""), Since: since.Before(now), Until: until.Before(now), Limit: most}
		list, err := admin.History(ctx, query)
		if err != nil {
			return err
		}
		printed := record.AlertHistory{Alerts: []record.PastAlert{}}
		rows := [][]string{{"FIRED", "LASTED", "SEVERITY", "ALERT", "BY", "WHAT"}}
		for _, p := range list {
			printed.Alerts = append(printed.Alerts, record.PastAlert{
				Name: p.Rule, Severity: p.Severity, Labels: p.Labels, Summary: p.Summary, Incident: p.Incident,
				FiredAt: console.Timestamp(p.FiredAt), EndedAt: console.Timestamp(p.EndedAt), SilencedBy: p.SilencedBy, AcknowledgedBy: p.AckedBy,
			})
			rows = append(rows, pastRow(p))
		}
		return out.PrintTable(printed, rows, "BY")
	})
}

func pastRow(p alerts.Past) []string {
	lasted := "fires"
	if !p.EndedAt.IsZero() {
		lasted = console.ShortDuration(p.EndedAt.Sub(p.FiredAt))
	}
	var by []string
	if p.SilencedBy != "" {
		by = append(by, "silenced: "+p.SilencedBy)
	}
	if p.AckedBy != "" {
		by = append(by, "acknowledged: "+p.AckedBy)
	}
	texts := slices.DeleteFunc([]string{p.Summary, p.Incident}, func(text string) bool { return text == "" })
	return []string{
		console.ShortTime(p.FiredAt), lasted, console.Flatten(p.Severity), console.Flatten(p.Rule + labelsText(p.Labels)),
		console.OrDash(console.Flatten(strings.Join(by, ", "))), console.OrDash(console.Flatten(strings.Join(texts, ". "))),
	}
}
