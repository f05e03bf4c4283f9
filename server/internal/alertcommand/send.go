package alertcommand

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/internal/program/service"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/server/internal/alertlinks"
	"github.com/exactly-one/tenure/server/internal/alerts"
	"github.com/exactly-one/tenure/server/internal/notifiers"
)

const alertsTestLong = `Send a test notification that an alert fires, and then one that it has ended. NAME is
a notifier of the configuration file, with a target if it takes one (slack:#ops).
NAME can also be an alert of the file, which tests all of its notifiers with the
templates of the alert.

The alert is about a made-up crash, or with --incident current about the latest
incident of the last 15 minutes in the database. With --print the messages are printed
and not sent.

Exits 0 if all notifications were acknowledged, and 1 if not.`

// The values of --incident.
const (
	sampleIncident  = "sample"
	currentIncident = "current"
)

// alertsTestCommand sends or prints test notifications.
type alertsTestCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	incident string
	print    bool
}

func newAlertsTest(out *console.Output) *cobra.Command {
	c := &alertsTestCommand{out: out}
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Send a test notification", Long: alertsTestLong,
		Example: "  tenure alerts test slack:#ops --config tenure.toml\n  tenure alerts test no_leader --print --config tenure.toml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage("give one notifier or alert; %d are given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&c.incident, "incident", sampleIncident, "what the alert is about: sample or current")
	cmd.Flags().BoolVar(&c.print, "print", false, "print the messages instead of sending them")
	c.database.Register(cmd.Flags())
	return cmd
}

// testedRecord is the printed result of a test.
type testedRecord struct {
	Address string `json:"address"`
	Sent    bool   `json:"sent"`
	Error   string `json:"error"`
}

// testedMessage is a message as printed.
type testedMessage struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

func (c *alertsTestCommand) run(cmd *cobra.Command, name string) error {
	if c.incident != sampleIncident && c.incident != currentIncident {
		return console.Usage("--incident is %q; it must be sample or current", c.incident)
	}
	configuration := settings.Of(cmd.Flags())
	if err := configuration.LoadNamed(cmd.Context(), nil); err != nil {
		return err
	}
	file, path := configuration.File, configuration.Path
	set, err := notifiers.Open(file.Notifiers())
	if err != nil {
		return err
	}
	defer set.Close()
	rule, addresses, known := testedBy(name, file.Alerts(), set)
	if !known || len(addresses) == 0 && !c.print {
		names := set.Names()
		for _, r := range file.Alerts() {
			names = append(names, r.Name)
		}
		if meant := nearest.Of(name, names); meant != "" && meant != name {
			return console.Usage("%s has no notifier and no notifying alert %q; did you mean %q?", path, name, meant)
		}
		return console.Usage("%s has no notifier and no notifying alert %q", path, name)
	}
	now := time.Now()
	about, err := c.about(cmd.Context(), rule, now)
	if err != nil {
		return err
	}
	cluster, url := file.Cluster()
	batch := notifiers.Batch{Cluster: cluster, URL: url, Incident: about.Incident, At: now, Test: true}
	alert := alerts.Preview(cmd.Context(), rule, about, now)
	alert.Links = alertlinks.Of(file, cmp.Or(cluster, service.DefaultClusterName))(alert)
	batch.Alerts = []notifiers.Alert{alert}
	if c.print {
		return c.printMessages(batch)
	}
	return c.send(cmd.Context(), set, addresses, batch)
}

// about returns the subject of the test.
func (c *alertsTestCommand) about(ctx context.Context, rule alerts.Rule, now time.Time) (alerts.Case, error) {
	if c.incident == sampleIncident {
		return alerts.SampleCase(rule, now), nil
	}
	ctx, cancel := context.WithTimeout(ctx, alertsTimeout)
	defer cancel()
	database, err := c.database.Work(ctx)
	if err != nil {
		return alerts.Case{}, err
	}
	defer database.Close()
	about, ok, err := alerts.CurrentCase(ctx, database.Backend, now)
	if err != nil {
		return alerts.Case{}, c.database.Explain(err)
	}
	if !ok {
		return alerts.Case{}, console.NotAcquired("the database has no incident of the last 15 minutes: use --incident sample")
	}
	return about, nil
}

// over returns the message for the end of a test's alert.
func over(batch notifiers.Batch) notifiers.Batch {
	ended := batch.Alerts[0]
	ended.ID, ended.EndedAt = uuid.New(), batch.At
	batch.Alerts = []notifiers.Alert{ended}
	return batch
}

func (c *alertsTestCommand) printMessages(batch notifiers.Batch) error {
	messages := []testedMessage{}
	var lines []string
	for _, b := range []notifiers.Batch{batch, over(batch)} {
		text := strings.TrimSuffix(b.Text(), "\n")
		messages = append(messages, testedMessage{b.Title(), text})
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, strings.Split(text, "\n")...)
	}
	return c.out.Print(map[string][]testedMessage{"messages": messages}, lines...)
}

// send sends the messages to all addresses, and prints the results.
func (c *alertsTestCommand) send(ctx context.Context, set notifiers.Set, addresses []string, batch notifiers.Batch) error {
	records, failed := []testedRecord{}, 0
	var lines []string
	for _, address := range addresses {
		record := testedRecord{Address: address, Sent: true}
		line := address + ": sent"
		if err := sendTest(ctx, set, address, batch); err != nil {
			failed++
			record.Sent, record.Error = false, console.Flatten(err.Error())
			line = address + ": not sent: " + record.Error
		}
		records, lines = append(records, record), append(lines, line)
	}
	if err := c.out.Print(map[string][]testedRecord{"tests": records}, lines...); err != nil {
		return err
	}
	if failed > 0 {
		return console.NotAcquired("%d of %d tests were not sent", failed, len(addresses))
	}
	return nil
}

// testedBy returns the rule to use for the test, and the addresses to notify.
func testedBy(name string, rules []alerts.Rule, set notifiers.Set) (rule alerts.Rule, addresses []string, known bool) {
	host, _ := os.Hostname() // for the operator
	if _, _, err := set.Find(name); err == nil {
		return alerts.Rule{Name: "tenure_test", Severity: "info", Annotations: map[string]string{
			"summary": "a message from " + strings.NewReplacer("{", "", "}", "").Replace(host),
		}}, []string{name}, true
	}
	if i := slices.IndexFunc(rules, func(r alerts.Rule) bool { return r.Name == name }); i >= 0 {
		return rules[i], rules[i].Notify, true
	}
	return alerts.Rule{}, nil, false
}

// sendTest sends the start and the end of an alert.
func sendTest(ctx context.Context, set notifiers.Set, address string, batch notifiers.Batch) error {
	notifier, target, err := set.Find(address)
	if err != nil {
		return err
	}
	batch.Alerts[0].ID = uuid.New()
	if err := notifier.Send(ctx, target, batch); err != nil {
		return err
	}
	return notifier.Send(ctx, target, over(batch))
}
