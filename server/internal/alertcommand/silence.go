package alertcommand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/server/internal/alerts"
)

// subject opens the alerts of the database for commands.
var subject = &connect.Subject[*alerts.Admin]{
	Name: "alert", List: "tenure alerts list",
	Open: func(d *connect.WorkDatabase) *alerts.Admin { return alerts.NewAdmin(d.Backend, d.Pool) },
	Offer: func(ctx context.Context, admin *alerts.Admin) ([]cobra.Completion, error) {
		names, err := admin.RuleNames(ctx)
		for i, name := range names {
			names[i] = console.Flatten(name)
		}
		return names, err
	},
	Unknown: func(err error) (name string, known []string) {
		if unknown, ok := errors.AsType[*alerts.UnknownRuleError](err); ok {
			return unknown.Name, unknown.Known
		}
		return "", nil
	},
}

// lengthFlag is the flag for how long something lasts.
type lengthFlag struct{ flagvalue.Duration }

func (f *lengthFlag) register(cmd *cobra.Command, what string) {
	cmd.Flags().Var(&f.Duration, "for", "how long the "+what+" lasts, such as 2h; required")
}

func (f *lengthFlag) check() error {
	switch {
	case f.Value == 0:
		return console.Usage("--for is required: how long, such as 2h")
	case f.Value < alerts.MinAttention || f.Value > alerts.MaxAttention:
		return console.Usage("--for is %v; it must be from %v to %v", f.Value, alerts.MinAttention, alerts.MaxAttention)
	}
	return nil
}

const silenceLong = `Silence alerts for a time. They still fire and appear on the dashboard and in
tenure alerts list, but no notification that they fire is sent. If an alert still fires
when the silence ends, its notifiers get it then. If the silence began after an alert was
sent, the end of the alert is sent also during the silence.

NAME is an alert. --match restricts the silence to alerts with a label, or without
NAME silences all alerts with it.`

func newAlertsSilence(out *console.Output) *cobra.Command {
	var (
		length  lengthFlag
		match   flagvalue.Labels
		comment string
	)
	cmd := &cobra.Command{
		Use: "silence [NAME]", Short: "Silence alerts for a time", Long: silenceLong,
		Example: "  tenure alerts silence no_leader --for 2h --comment maintenance\n  tenure alerts silence --match role=billing --for 30m",
		Args:    atMostOne("alert"), ValidArgsFunction: subject.Complete,
	}
	length.register(cmd, "silence")
	cmd.Flags().Var(&match, "match", "label NAME=VALUE that an alert must have; repeatable")
	cmd.Flags().StringVar(&comment, "comment", "", "reason to record")
	return checkedFirst(subject.Change(cmd, func(ctx context.Context, admin *alerts.Admin, args []string, by string) error {
		s := alerts.Silence{Rule: strings.Join(args, ""), Matchers: match.Values, Comment: comment, CreatedBy: by}
		s, err := admin.Silence(ctx, s, length.Value)
		if err != nil {
			return err
		}
		return out.Print(newSilenceRecord(s), fmt.Sprintf("silence %d: %s until %s", s.ID, silenced(s), console.ShortTime(s.Until)))
	}), func(args []string) error {
		if len(args) == 0 && len(match.Values) == 0 {
			return console.Usage("name an alert, or labels with --match")
		}
		return length.check()
	})
}

// checkedFirst makes a command check its input before it opens the database.
func checkedFirst(cmd *cobra.Command, check func(args []string) error) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(args); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

func newAlertsUnsilence(out *console.Output) *cobra.Command {
	cmd := &cobra.Command{
		Use: "unsilence NUMBER", Short: "End a silence early",
		Long:    "End a silence early. NUMBER is its number in tenure alerts silences. Notifications of\nalerts that still fire are sent then.",
		Example: "  tenure alerts unsilence 3",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage("give the number of one silence; see tenure alerts silences")
			}
			if n, err := strconv.ParseInt(args[0], 10, 64); err != nil || n < 1 {
				return console.Usage("%q is not the number of a silence; see tenure alerts silences", args[0])
			}
			return nil
		},
	}
	return subject.Change(cmd, func(ctx context.Context, admin *alerts.Admin, args []string, by string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err == nil {
			err = admin.Unsilence(ctx, id, by)
		}
		if errors.Is(err, alerts.ErrNoSilence) {
			return console.Usage("%w; see tenure alerts silences", err)
		}
		if err != nil {
			return err
		}
		return out.Print(map[string]int64{"ended": id}, fmt.Sprintf("silence %d has ended", id))
	})
}

func newSilenceRecord(s alerts.Silence) record.Silence {
	match := map[string]string{}
	maps.Copy(match, s.Matchers)
	return record.Silence{
		Number: s.ID, Alert: s.Rule, Match: match, Comment: s.Comment, CreatedBy: s.CreatedBy, CreatedAt: console.Timestamp(s.CreatedAt),
		Until: console.Timestamp(s.Until), EndedBy: s.EndedBy, EndedAt: console.Timestamp(s.EndedAt),
	}
}

// silenced describes the alerts of a silence.
func silenced(s alerts.Silence) string {
	what := s.Rule
	what = cmp.Or(what, "all alerts")
	return console.Flatten(what + labelsText(s.Matchers))
}

func newAlertsSilences(out *console.Output) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "silences", Short: "List silences",
		Long:    "List the current silences, latest first. With --all, list also the silences that\nended in the last 90 days.",
		Example: "  tenure alerts silences --all", Args: console.NoArgs,
	}
	cmd.Flags().BoolVar(&all, "all", false, "list also the silences that have ended")
	return subject.Read(cmd, func(ctx context.Context, admin *alerts.Admin, _ []string) error {
		list, err := admin.Silences(ctx, all)
		if err != nil {
			return err
		}
		printed := record.Silences{Silences: []record.Silence{}}
		rows := [][]string{{"NUMBER", "ALERTS", "UNTIL", "BY", "ENDED BY", "COMMENT"}}
		for _, s := range list {
			printed.Silences = append(printed.Silences, newSilenceRecord(s))
			rows = append(rows, []string{
				strconv.FormatInt(s.ID, 10), silenced(s), console.ShortTime(s.Until), console.Flatten(s.CreatedBy),
				console.OrDash(console.Flatten(s.EndedBy)), console.OrDash(console.Flatten(s.Comment)),
			})
		}
		return out.PrintTable(printed, rows, "ENDED BY")
	})
}

const acknowledgeLong = `Record that an operator handles the firing alerts with this name. The dashboard and tenure
alerts list show the operator and the end of the acknowledgment. If an alert still fires
at that time, its notifiers get it again.

Exits 1 if no such alert fires.`

func newAlertsAcknowledge(out *console.Output) *cobra.Command {
	var (
		length lengthFlag
		match  flagvalue.Labels
	)
	cmd := &cobra.Command{
		Use: "acknowledge NAME", Short: "Record that an operator handles an alert", Long: acknowledgeLong,
		Example: "  tenure alerts acknowledge no_leader --for 1h",
	}
	length.register(cmd, "acknowledgment")
	cmd.Flags().Var(&match, "match", "label NAME=VALUE that an alert must have; repeatable")
	return checkedFirst(subject.Change(cmd, func(ctx context.Context, admin *alerts.Admin, args []string, by string) error {
		count, err := admin.Acknowledge(ctx, args[0], match.Values, by, length.Value)
		if errors.Is(err, alerts.ErrNotFiring) {
			return console.NotAcquired("%w", err)
		}
		if err != nil {
			return err
		}
		return out.Print(map[string]int{"acknowledged": count}, fmt.Sprintf("acknowledged: %d", count))
	}), func([]string) error { return length.check() })
}
